-- name: look
-- The filestore sync of the metastore: its switch, its place in the log, what it had to refuse, and
-- the last rebuild.
SELECT s.paused, s.changed_by, s.changed_at, c.sequence, c.last_error, c.updated_at, h.last,
    coalesce((
        SELECT extract(epoch FROM statement_timestamp() - w.received_at)::float8
        FROM bus.workflow_events w WHERE w.ingress_sequence = c.sequence + 1
    ), 0) AS lag_seconds,
    (
        SELECT count(*) FROM metastore.sync_refusals f WHERE f.namespace = %(namespace)s
    ) AS refused,
    (
        SELECT to_jsonb(r) FROM metastore.sync_rebuilds r ORDER BY r.id DESC LIMIT 1
    ) AS rebuild
FROM metastore.sync_control s CROSS JOIN bus.ingress_head h
LEFT JOIN bus.cursors c ON c.consumer = 'tristore.metastore.sync'
