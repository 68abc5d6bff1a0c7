-- name: observe
-- What a version of the table holds. A closed partition to which rows came is open again, also if a
-- compaction has sorted them in meanwhile. Of a dataset that was deleted nothing is told: another
-- of its name would seem to have had these partitions.
WITH live AS (
    SELECT slug FROM timestore.datasets
    WHERE slug = %(dataset)s AND folder = %(folder)s AND status = 'active' FOR SHARE
), seen AS (
    SELECT * FROM jsonb_to_recordset(%(seen)s::jsonb) AS s (
        partition text, from_time timestamptz, to_time timestamptz, rows bigint, bytes bigint,
        files integer
    )
), gone AS (
    UPDATE timestore.partitions p
    SET state = 'removed', rows = 0, bytes = 0, files = 0, table_version = %(version)s,
        updated_at = clock_timestamp()
    WHERE p.dataset IN (SELECT slug FROM live) AND p.state <> 'removed'
        AND NOT EXISTS (SELECT FROM seen s WHERE s.partition = p.partition)
)
INSERT INTO timestore.partitions AS p
    (dataset, partition, from_time, to_time, rows, bytes, files, table_version)
SELECT slug, partition, from_time, to_time, rows, bytes, files, %(version)s FROM live, seen
ON CONFLICT (dataset, partition) DO UPDATE
SET rows = excluded.rows, bytes = excluded.bytes, files = excluded.files,
    table_version = excluded.table_version, updated_at = clock_timestamp(),
    state = 'open'
WHERE (p.rows, p.bytes, p.files) IS DISTINCT FROM (excluded.rows, excluded.bytes, excluded.files)
    OR p.state = 'removed' OR (p.state = 'closed' AND NOT excluded.partition = ANY(%(settled)s))

-- name: partitions
SELECT partition, state, revision FROM timestore.partitions WHERE dataset = %(dataset)s

-- name: close
-- The event exists if and only if the partition is closed by this revision.
WITH closed AS (
    UPDATE timestore.partitions
    SET state = 'closed', revision = revision + 1, rows = %(rows)s, bytes = %(bytes)s,
        files = %(files)s, table_version = %(version)s, closed_at = clock_timestamp(),
        updated_at = clock_timestamp()
    WHERE dataset = %(dataset)s AND partition = %(partition)s AND state = 'open'
        AND revision = %(revision)s
    RETURNING 1
)
INSERT INTO bus.outbox (event_id, source, body_hash, envelope)
SELECT %(event_id)s, %(source)s, %(body_hash)s, %(envelope)s FROM closed
