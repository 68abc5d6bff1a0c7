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
WITH rows AS (
    SELECT o.source, o.event_id, date_trunc('minute', o.created_at) AS minute, CASE
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
), queued AS (
    SELECT w.source, date_trunc('minute', w.received_at) AS minute, count(*) AS events
    FROM bus.workflow_events w
    WHERE w.received_at >= %(since)s AND w.received_at < %(until)s
        AND NOT EXISTS (SELECT FROM bus.outbox o WHERE o.event_id = w.id)
    GROUP BY 1, 2
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
)
SELECT minute, source, coalesce(c.outbox, 0) AS outbox, coalesce(c.stored, 0) AS stored,
    coalesce(c.dead_lettered, 0) AS dead_lettered, coalesce(c.in_flight, 0) AS in_flight,
    coalesce(c.missing, 0) AS missing, coalesce(q.events, 0) AS queue_published,
    coalesce(c.missing_ids, '{}') AS missing_ids
FROM counted c FULL JOIN queued q USING (source, minute)
ORDER BY minute, source
