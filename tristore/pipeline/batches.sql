-- name: head
SELECT epoch::text, last FROM timestore.ingest_head

-- name: start
-- Where a new checkpoint begins: before the first batch that still waits.
SELECT coalesce((SELECT min(id) - 1 FROM timestore.ingest_batches WHERE state = 'staged'),
    (SELECT last FROM timestore.ingest_head))

-- name: reach
-- How far to go for about so many rows, and by one batch at least.
SELECT max(id) FROM (
    SELECT id, sum(rows) OVER (ORDER BY id) - rows AS before FROM (
        SELECT id, rows FROM timestore.ingest_batches
        WHERE id > %(after)s AND id <= %(through)s ORDER BY id LIMIT %(files)s
    ) AS next
) AS summed
WHERE before < %(rows)s

-- name: waiting
-- The staged batches of a range, each with the dataset as it is now.
SELECT b.id, b.file, b.rows, d.slug, d.folder, d.status, d.time_column, d.granularity, d.schema
FROM timestore.ingest_batches b JOIN timestore.datasets d ON d.slug = b.dataset
WHERE b.id > %(after)s AND b.id <= %(through)s AND b.state = 'staged'
ORDER BY b.id

-- name: commit
UPDATE timestore.ingest_batches
SET state = 'committed', table_version = %(version)s, committed_at = clock_timestamp()
WHERE id = ANY(%(ids)s) AND state = 'staged'

-- name: fail
UPDATE timestore.ingest_batches SET state = 'failed', error = %(error)s
WHERE id = ANY(%(ids)s) AND state = 'staged'

-- name: awaited
-- Of these files the ones whose rows are not in a table yet.
SELECT file FROM timestore.ingest_batches WHERE state = 'staged' AND file = ANY(%(files)s)
