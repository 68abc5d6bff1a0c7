-- name: find
SELECT slug, kind, time_column, granularity, schema, retention, lateness_seconds, read_scope,
    write_scope, status, folder, version, created_at, created_by, updated_at, updated_by
FROM timestore.datasets WHERE slug = %(slug)s

-- name: page
-- Live datasets by name; `only` and `scopes` are what the asking token may see.
SELECT slug, kind, time_column, granularity, schema, retention, lateness_seconds, read_scope,
    write_scope, status, folder, version, created_at, created_by, updated_at, updated_by
FROM timestore.datasets
WHERE status = 'active' AND slug > %(after)s
    AND (%(only)s::text[] IS NULL OR slug = ANY(%(only)s))
    AND (%(scopes)s::text[] IS NULL OR read_scope = ANY(%(scopes)s))
ORDER BY slug LIMIT %(limit)s

-- name: lock
SELECT slug, kind, time_column, granularity, schema, retention, lateness_seconds, read_scope,
    write_scope, status, folder, version, created_at, created_by, updated_at, updated_by
FROM timestore.datasets WHERE slug = %(slug)s FOR UPDATE

-- name: share
-- Keeps a dataset from being altered or deleted until the transaction ends.
SELECT slug, kind, time_column, granularity, schema, retention, lateness_seconds, read_scope,
    write_scope, status, folder, version, created_at, created_by, updated_at, updated_by
FROM timestore.datasets WHERE slug = %(slug)s FOR SHARE

-- name: create
-- A deleted dataset may be made anew; its version goes on, so that no reader takes one for the
-- other.
INSERT INTO timestore.datasets AS d
    (slug, kind, time_column, granularity, schema, retention, lateness_seconds, read_scope,
     write_scope, folder, created_by, updated_by, token_id, idempotency_key, request_hash)
VALUES
    (%(slug)s, 'ingest', %(time_column)s, %(granularity)s, %(schema)s, %(retention)s,
     %(lateness_seconds)s, %(read_scope)s, %(write_scope)s, %(folder)s, %(actor)s, %(actor)s,
     %(token_id)s, %(key)s, %(request_hash)s)
ON CONFLICT (slug) DO UPDATE SET
    time_column = excluded.time_column, granularity = excluded.granularity,
    schema = excluded.schema, retention = excluded.retention,
    lateness_seconds = excluded.lateness_seconds, read_scope = excluded.read_scope,
    write_scope = excluded.write_scope, folder = excluded.folder, status = 'active',
    version = d.version + 1, created_at = clock_timestamp(), created_by = excluded.created_by,
    updated_at = clock_timestamp(), updated_by = excluded.updated_by,
    token_id = excluded.token_id, idempotency_key = excluded.idempotency_key,
    request_hash = excluded.request_hash
WHERE d.status = 'deleted' AND d.kind = 'ingest'
RETURNING slug

-- name: by_key
SELECT slug, request_hash FROM timestore.datasets
WHERE token_id = %(token_id)s AND idempotency_key = %(key)s

-- name: alter
UPDATE timestore.datasets SET
    schema = %(schema)s, retention = %(retention)s, lateness_seconds = %(lateness_seconds)s,
    read_scope = %(read_scope)s, write_scope = %(write_scope)s, version = version + 1,
    updated_at = clock_timestamp(), updated_by = %(actor)s
WHERE slug = %(slug)s

-- name: delete
UPDATE timestore.datasets
SET status = 'deleted', version = version + 1, updated_at = clock_timestamp(),
    updated_by = %(actor)s, idempotency_key = NULL
WHERE slug = %(slug)s

-- name: fail_staged
UPDATE timestore.ingest_batches SET state = 'failed', error = 'the dataset was deleted'
WHERE dataset = %(slug)s AND state = 'staged'

-- name: fail_exports
-- One that still waits would write out the rows of another dataset of this name, which may be
-- meant for other readers.
UPDATE timestore.exports SET state = 'failed', error = 'the dataset was deleted'
WHERE dataset = %(slug)s AND state = 'queued'

-- name: release_keys
-- A dataset made anew has not seen what an earlier one of its name has.
UPDATE timestore.ingest_batches SET idempotency_key = NULL
WHERE dataset = %(slug)s AND idempotency_key IS NOT NULL

-- name: forget_partitions
DELETE FROM timestore.partitions WHERE dataset = %(slug)s
