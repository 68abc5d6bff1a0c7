-- name: folder
-- The folder of a file, cut at a depth; '' is the mount itself.
array_to_string(string_split({path}, '/')[1:least(len(string_split({path}, '/')) - 1, {depth})], '/')

-- name: files
-- What counts: changes of files, each as one of four kinds; reconciliations by their outcome.
SELECT *,
    (type IN ('filestore.node.created', 'filestore.node.copied', 'filestore.nodes.imported')
        OR type = 'filestore.node.reconciled' AND outcome IN ('created', 'restored'))::BIGINT
        AS created,
    (type = 'filestore.node.updated'
        OR type = 'filestore.node.reconciled' AND outcome = 'updated')::BIGINT AS updated,
    (type IN ('filestore.node.deleted', 'filestore.node.missing'))::BIGINT AS deleted,
    (type = 'filestore.node.moved')::BIGINT AS moved
FROM {relation}
WHERE kind = 'file' AND size_delta IS NOT NULL

-- name: tail
-- What the pipeline's growth sums make of the same rows: bytes go to the folders a file came under
-- and are taken from those it left; a file moved inside of a folder moves none of its bytes.
-- Summed by folder before the folders above get their share: there are far fewer of those.
WITH files AS (
    SELECT date_trunc('hour', occurred_at) AS hour, mount,
        {here} AS here,
        {there} AS there,
        sum(size_bytes) AS size_bytes,
        sum(greatest(size_delta, 0)) AS came,
        sum(greatest(-size_delta, 0)) AS went,
        sum(created) AS created,
        sum(updated) AS updated,
        sum(deleted) AS deleted,
        sum(moved) AS moved
    FROM ({files})
    GROUP BY ALL
), levels AS (
    SELECT * REPLACE (
            CASE WHEN level = 0 OR level <= len(string_split(nullif(here, ''), '/'))
                THEN array_to_string(string_split(here, '/')[1:level], '/') END AS here,
            CASE WHEN there IS NOT NULL
                    AND (level = 0 OR level <= len(string_split(nullif(there, ''), '/')))
                THEN array_to_string(string_split(there, '/')[1:level], '/') END AS there),
        there IS NOT NULL AS moved_here
    FROM files CROSS JOIN range(0, {depth} + 1) AS depths (level)
), shares AS (
    SELECT *, here AS prefix,
        CASE WHEN NOT moved_here THEN came WHEN here IS DISTINCT FROM there THEN size_bytes ELSE 0
            END AS bytes_in,
        CASE WHEN moved_here THEN 0 ELSE went END AS bytes_out
    FROM levels WHERE here IS NOT NULL
    UNION ALL
    SELECT *, there, 0, size_bytes
    FROM levels WHERE there IS NOT NULL AND there IS DISTINCT FROM here
)
SELECT hour, mount, prefix, level::INTEGER AS depth,
    sum(bytes_in)::BIGINT AS bytes_in,
    sum(bytes_out)::BIGINT AS bytes_out,
    sum(bytes_in - bytes_out)::BIGINT AS net_bytes,
    sum(created)::BIGINT AS created,
    sum(updated)::BIGINT AS updated,
    sum(deleted)::BIGINT AS deleted,
    sum(moved)::BIGINT AS moved,
    strftime(hour, '%Y-%m') AS month
FROM shares
GROUP BY hour, mount, prefix, level

-- name: folder_changes
-- The same rules for one folder ($1, '' is the mount) at any depth, a row for each change.
SELECT epoch_ms(occurred_at) // 1000 AS seconds, mount,
    CASE WHEN previous_path IS NULL THEN greatest(size_delta, 0)
        WHEN starts_with(path, {inside}) AND NOT starts_with(previous_path, {inside})
            THEN size_bytes ELSE 0 END AS bytes_in,
    CASE WHEN previous_path IS NULL THEN greatest(-size_delta, 0)
        WHEN starts_with(previous_path, {inside}) AND NOT starts_with(path, {inside})
            THEN size_bytes ELSE 0 END AS bytes_out,
    created, updated, deleted, moved
FROM ({files})
WHERE starts_with(path, {inside}) OR starts_with(previous_path, {inside})
