-- name: fed
SELECT DISTINCT f.dataset FROM timestore.fed f JOIN bus.ingress_head h USING (epoch)
WHERE f.dataset = ANY(%(datasets)s)

-- name: shares
-- An event is in a table if it lies in a stretch of the log that was committed to it; behind the
-- last stretch it waits for the pipeline, between two it was lost. All events go to the archive,
-- those of the filestore to the others too. Minutes are those of the ledger: of the outbox row,
-- or of arrival where there is none.
WITH held AS (
    SELECT f.dataset, range_agg(int8range(f.after, f.through, '(]')) AS stretches,
        max(f.through) AS through
    FROM timestore.fed f JOIN bus.ingress_head h USING (epoch)
    WHERE f.dataset = ANY(%(datasets)s)
    GROUP BY f.dataset
), stored AS (
    SELECT w.id, w.source, w.type, w.ingress_sequence AS sequence,
        date_trunc('minute', o.created_at) AS minute
    FROM bus.outbox o JOIN bus.workflow_events w ON w.id = o.event_id AND w.body_hash = o.body_hash
    WHERE o.created_at >= %(since)s AND o.created_at < %(until)s
    UNION ALL
    SELECT w.id, w.source, w.type, w.ingress_sequence, date_trunc('minute', w.received_at)
    FROM bus.workflow_events w
    WHERE w.received_at >= %(since)s AND w.received_at < %(until)s
        AND NOT EXISTS (SELECT FROM bus.outbox o WHERE o.event_id = w.id)
), told AS (
    SELECT h.dataset, s.minute, s.source, s.id, CASE
        WHEN h.stretches @> s.sequence THEN 'in table'
        WHEN s.sequence > h.through THEN 'waiting'
        ELSE 'missing'
    END AS fate
    FROM stored s JOIN held h ON h.dataset = 'events' OR s.type LIKE 'filestore.%%'
)
SELECT dataset, minute, source, count(*) AS events,
    count(*) FILTER (WHERE fate = 'in table') AS in_table,
    count(*) FILTER (WHERE fate = 'waiting') AS waiting,
    count(*) FILTER (WHERE fate = 'missing') AS missing,
    coalesce((array_agg(id ORDER BY id) FILTER (WHERE fate = 'missing'))[:%(named)s], '{}')
        AS missing_ids
FROM told
GROUP BY dataset, minute, source
ORDER BY minute, source, dataset
