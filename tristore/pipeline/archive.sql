-- name: view
SELECT pg_get_viewdef('bus.filestore_activity_v')

-- name: log
bus.workflow_events e

-- name: archived
(SELECT id, type, occurred_at, ingress_sequence, payload::jsonb AS payload, correlation_id
 FROM pg_temp.archived) e

-- name: activity
SELECT sequence, event_id, ordinal, occurred_at, type, command, mount, path, folder, node_id, kind,
       size_bytes, size_delta, state, outcome, duration_ms, principal, journal_id, correlation_id,
       previous_path
FROM ({view}) AS activity

-- name: clear
DROP TABLE pg_temp.archived
