-- name: page
-- Newest first; what retention removed is shown only when it is asked for.
SELECT partition, state, revision, from_time, to_time, rows, bytes, files, table_version, closed_at,
    updated_at
FROM timestore.partitions
WHERE dataset = %(dataset)s AND (%(before)s::text IS NULL OR partition < %(before)s)
    AND state = ANY(%(states)s)
ORDER BY partition DESC LIMIT %(limit)s
