-- name: find
SELECT id, dataset, state, format, rows, bytes AS size, from_time, to_time, schema_version, table_version,
    error, principal, request_hash, correlation_id, staged_at, committed_at
FROM timestore.ingest_batches WHERE id = %(id)s

-- name: by_key
SELECT id, dataset, state, format, rows, bytes AS size, from_time, to_time, schema_version, table_version,
    error, principal, request_hash, correlation_id, staged_at, committed_at
FROM timestore.ingest_batches
WHERE dataset = %(dataset)s AND token_id = %(token_id)s AND idempotency_key = %(key)s
    AND state <> 'failed'

-- name: by_file
-- Whether a transaction whose end nobody heard was committed.
SELECT id, dataset, state, format, rows, bytes AS size, from_time, to_time, schema_version, table_version,
    error, principal, request_hash, correlation_id, staged_at, committed_at
FROM timestore.ingest_batches WHERE file = %(file)s

-- name: add
-- The head's row is locked from here to the commit: numbers become visible in their order.
WITH head AS (UPDATE timestore.ingest_head SET last = last + 1 RETURNING last)
INSERT INTO timestore.ingest_batches
    (id, dataset, file, format, rows, bytes, from_time, to_time, schema_version, token_id,
     principal, idempotency_key, request_hash, correlation_id)
SELECT last, %(dataset)s, %(file)s, %(format)s, %(rows)s, %(size)s, %(from_time)s, %(to_time)s,
    %(schema_version)s, %(token_id)s, %(principal)s, %(key)s, %(request_hash)s, %(correlation_id)s
FROM head
RETURNING id, dataset, state, format, rows, bytes AS size, from_time, to_time, schema_version,
    table_version, error, principal, request_hash, correlation_id, staged_at, committed_at

-- name: settled
-- Of these the ones that wait no longer.
SELECT id FROM timestore.ingest_batches WHERE id = ANY(%(ids)s) AND state <> 'staged'

-- name: waiting
-- Batches that are not in their table yet, counted no further than makes a difference.
SELECT dataset, count(*) FROM (
    SELECT dataset FROM timestore.ingest_batches WHERE state = 'staged' LIMIT 1000000
) AS staged
GROUP BY dataset
