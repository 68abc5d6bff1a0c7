-- name: covers
-- The ledger begins with the oldest outbox row that is kept, or with today, since a day's rows are
-- not dropped before the day is over. Where the log has been cut it begins with the first event
-- left: what is older may have been stored and removed since.
SELECT clock_timestamp(),
    greatest(
        least(
            (SELECT min(created_at) FROM bus.outbox),
            date_trunc('day', clock_timestamp(), 'UTC')
        ),
        (
            SELECT w.received_at
            FROM bus.ingress_head h JOIN bus.workflow_events w ON w.ingress_sequence = h.earliest
            WHERE h.earliest > 1
        )
    )

-- name: minutes
-- What became of each outbox row, and which events came by the queue alone; one statement, so
-- that all of it is seen at one moment. A letter that was replayed under the same id no longer
-- accounts for its row: the event must be stored, waiting, or refused anew.
--
-- A stored event that tells of nodes is in the metastore's view once the record of each of them
-- tells of that version or a later one, or was purged by hand. Before that it waits for the sync,
-- or was refused by the rules of the records' namespace. Without a namespace there is no sync.
WITH rows AS (
    SELECT o.source, o.event_id, date_trunc('minute', o.created_at) AS minute, w.type, CASE
        WHEN w.body_hash = o.body_hash THEN 'stored'
        WHEN o.state <> 'done' THEN 'in flight'
        WHEN EXISTS (
            SELECT FROM bus.dead_letters d
            WHERE d.event_id = o.event_id
                AND NOT (d.state = 'replayed' AND d.replayed_as = d.event_id)
        ) THEN 'dead-lettered'
        ELSE 'missing'
    END AS fate
    FROM bus.outbox o LEFT JOIN bus.workflow_events w ON w.id = o.event_id
    WHERE o.created_at >= %(since)s AND o.created_at < %(until)s
), alone AS (
    SELECT w.source, w.id AS event_id, date_trunc('minute', w.received_at) AS minute, w.type
    FROM bus.workflow_events w
    WHERE w.received_at >= %(since)s AND w.received_at < %(until)s
        AND NOT EXISTS (SELECT FROM bus.outbox o WHERE o.event_id = w.id)
), queued AS (
    SELECT source, minute, count(*) AS events FROM alone GROUP BY source, minute
), counted AS (
    SELECT source, minute, count(*) AS outbox,
        count(*) FILTER (WHERE fate = 'stored') AS stored,
        count(*) FILTER (WHERE fate = 'dead-lettered') AS dead_lettered,
        count(*) FILTER (WHERE fate = 'in flight') AS in_flight,
        count(*) FILTER (WHERE fate = 'missing') AS missing,
        (array_agg(event_id ORDER BY event_id) FILTER (WHERE fate = 'missing'))[:%(named)s]
            AS missing_ids
    FROM rows
    GROUP BY source, minute
), of_nodes AS (
    SELECT source, minute, event_id FROM (
        SELECT source, minute, event_id, type FROM rows WHERE fate = 'stored'
        UNION ALL
        SELECT source, minute, event_id, type FROM alone
    ) AS stored
    WHERE %(namespace)s::text IS NOT NULL
        AND (type LIKE 'filestore.node.%%' OR type = 'filestore.nodes.imported')
), followed AS (
    SELECT e.source, e.minute, e.event_id, CASE
        WHEN n.in_view THEN 'in view'
        WHEN w.ingress_sequence > coalesce((
            SELECT sequence FROM bus.cursors WHERE consumer = 'tristore.metastore.sync'
        ), 0) THEN 'waiting'
        WHEN n.refused OR EXISTS (
            SELECT FROM metastore.sync_refusals f
            WHERE f.namespace = %(namespace)s AND f.key = e.event_id AND f.reason = 'unreadable'
        ) THEN 'refused'
        ELSE 'missing'
    END AS fate
    FROM of_nodes e JOIN bus.workflow_events w ON w.id = e.event_id, LATERAL (
        SELECT coalesce(bool_and(told.seen), true) AS in_view,
            bool_and(told.seen OR told.refused) AS refused
        FROM (
            SELECT (
                coalesce(r.metadata -> 'filestore' -> 'version' >= node -> 'version', false)
                OR (r.key IS NULL AND EXISTS (
                    SELECT FROM metastore.purges p
                    WHERE p.namespace = %(namespace)s AND p.key = node ->> 'nodeId'
                ))
            ) AS seen, EXISTS (
                SELECT FROM metastore.sync_refusals f
                WHERE f.namespace = %(namespace)s AND f.key = node ->> 'nodeId'
                    AND f.view -> 'version' >= node -> 'version'
            ) AS refused
            FROM jsonb_array_elements(
                CASE WHEN jsonb_typeof(w.payload -> 'nodes') = 'array' THEN w.payload -> 'nodes'
                ELSE jsonb_build_array(w.payload) END
            ) AS node
            LEFT JOIN metastore.records r
                ON r.namespace = %(namespace)s AND r.key = node ->> 'nodeId'
        ) AS told
    ) AS n
), viewed AS (
    SELECT source, minute, count(*) AS node_events,
        count(*) FILTER (WHERE fate = 'in view') AS in_view,
        count(*) FILTER (WHERE fate = 'waiting') AS view_waiting,
        count(*) FILTER (WHERE fate = 'refused') AS view_refused,
        count(*) FILTER (WHERE fate = 'missing') AS view_missing,
        (array_agg(event_id ORDER BY event_id) FILTER (WHERE fate = 'missing'))[:%(named)s]
            AS view_missing_ids
    FROM followed
    GROUP BY source, minute
)
SELECT minute, source, coalesce(c.outbox, 0) AS outbox, coalesce(c.stored, 0) AS stored,
    coalesce(c.dead_lettered, 0) AS dead_lettered, coalesce(c.in_flight, 0) AS in_flight,
    coalesce(c.missing, 0) AS missing, coalesce(q.events, 0) AS queue_published,
    coalesce(v.node_events, 0) AS node_events, coalesce(v.in_view, 0) AS in_view,
    coalesce(v.view_waiting, 0) AS view_waiting, coalesce(v.view_refused, 0) AS view_refused,
    coalesce(v.view_missing, 0) AS view_missing,
    coalesce(c.missing_ids, '{}') || coalesce(v.view_missing_ids, '{}') AS missing_ids
FROM counted c FULL JOIN queued q USING (source, minute) LEFT JOIN viewed v USING (source, minute)
ORDER BY minute, source
