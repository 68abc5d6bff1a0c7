-- name: datasets
SELECT slug, kind, time_column, granularity, schema, retention, lateness_seconds, read_scope,
    write_scope, status, folder, version, created_at, created_by, updated_at, updated_by
FROM timestore.datasets WHERE status = 'active' ORDER BY slug

-- name: heads
-- The clock first: what is due by it can only lie before the heads read after it.
SELECT clock_timestamp(),
    (SELECT last FROM bus.ingress_head), (SELECT last FROM timestore.ingest_head)

-- name: staged
-- Whether a batch that was staged by then still waits for its table.
SELECT EXISTS (
    SELECT FROM timestore.ingest_batches
    WHERE dataset = %(dataset)s AND state = 'staged' AND id <= %(position)s
)
