-- name: one_at_a_time
-- Until the transaction ends nobody else makes a mount: two might overlap unseen.
SELECT pg_advisory_xact_lock(7443, 0)

-- name: create
-- A mount with the root of its tree; nothing if the name is taken.
WITH made AS (
    INSERT INTO filestore.mounts
        (name, kind, access, config, audit_seconds, created_by, token_id, idempotency_key,
         last_audit_at)
    VALUES (%(name)s, %(kind)s, %(access)s, %(config)s::jsonb, %(audit_seconds)s, %(created_by)s,
        %(token_id)s, %(key)s, CASE WHEN %(empty)s THEN clock_timestamp() END)
    ON CONFLICT (name) DO NOTHING
    RETURNING id
), root AS (
    INSERT INTO filestore.nodes (mount_id, path, name, kind, state, journal_id)
    SELECT id, '', '', 'directory', 'active', 0 FROM made
)
SELECT id FROM made

-- name: by_key
SELECT name FROM filestore.mounts WHERE token_id = %(token_id)s AND idempotency_key = %(key)s

-- name: by_name
SELECT id, name, kind, access, config, audit_seconds, last_audit_at, degraded, created_at,
    created_by
FROM filestore.mounts WHERE name = %(name)s

-- name: by_id
SELECT id, name, kind, access, config, audit_seconds, last_audit_at, degraded, created_at,
    created_by
FROM filestore.mounts WHERE id = %(id)s

-- name: every
SELECT id, name, kind, access, config, audit_seconds, last_audit_at, degraded, created_at,
    created_by
FROM filestore.mounts ORDER BY name
