-- name: add
INSERT INTO timestore.exports
    (dataset, format, target, from_time, to_time, principal, token_id, idempotency_key,
     correlation_id)
VALUES
    (%(dataset)s, %(format)s, %(target)s, %(from_time)s, %(to_time)s, %(principal)s, %(token_id)s,
     %(idempotency_key)s, %(correlation_id)s)
ON CONFLICT DO NOTHING
RETURNING id

-- name: by_key
SELECT id FROM timestore.exports
WHERE token_id = %(token_id)s AND idempotency_key = %(idempotency_key)s AND state <> 'failed'

-- name: get
SELECT id, dataset, format, target, from_time, to_time, state, progress, rows, bytes, files, error,
    table_version, principal, created_at, started_at, completed_at
FROM timestore.exports WHERE id = %(id)s

-- name: page
-- Newest first; `only` are the datasets the asking token may read.
SELECT id, dataset, format, target, from_time, to_time, state, progress, rows, bytes, files, error,
    table_version, principal, created_at, started_at, completed_at
FROM timestore.exports
WHERE (%(dataset)s::text IS NULL OR dataset = %(dataset)s)
    AND (%(before)s::bigint IS NULL OR id < %(before)s)
    AND dataset IN (
        SELECT slug FROM timestore.datasets
        WHERE status = 'active' AND read_scope = ANY(%(scopes)s)
            AND (%(only)s::text[] IS NULL OR slug = ANY(%(only)s))
    )
ORDER BY id DESC LIMIT %(limit)s
