-- name: mount_exists
SELECT EXISTS (SELECT FROM filestore.mounts WHERE name = %(name)s)

-- name: mount_told
-- Events may tell of a mount that this filestore does not have.
SELECT 1 FROM filestore_growth WHERE mount = $1 LIMIT 1

-- name: hours
-- The sums of a folder ($1), by hour; its depth is told besides, since numbers are compared faster.
SELECT epoch_ms(hour) // 1000 AS seconds, mount, bytes_in, bytes_out, created, updated, deleted, moved
FROM filestore_growth
WHERE depth = {depth} AND prefix = $1

-- name: growth
-- $2 begin, $3 width and $4 count of the buckets, in seconds. What lies before them is bucket -1:
-- it is in every total, and not shown. $5 is the mount to be named, $6 those that count.
WITH changes AS ({changes}), sums AS (
    SELECT CASE WHEN seconds < $2 THEN -1 ELSE (seconds - $2) // $3 END AS number,
        sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out,
        sum(created) AS created, sum(updated) AS updated,
        sum(deleted) AS deleted, sum(moved) AS moved
    FROM changes
    WHERE {mounts}
    GROUP BY number
)
SELECT to_timestamp($2::BIGINT + number * $3::BIGINT) AS bucket,
    $5::VARCHAR AS mount,
    $1::VARCHAR AS prefix,
    coalesce(bytes_in, 0)::BIGINT AS "bytesIn",
    coalesce(bytes_out, 0)::BIGINT AS "bytesOut",
    coalesce(bytes_in - bytes_out, 0)::BIGINT AS "netBytes",
    coalesce(created, 0)::BIGINT AS created,
    coalesce(updated, 0)::BIGINT AS updated,
    coalesce(deleted, 0)::BIGINT AS deleted,
    coalesce(moved, 0)::BIGINT AS moved,
    coalesce(sum(bytes_in - bytes_out) OVER (ORDER BY number), 0)::BIGINT AS "totalBytes"
FROM range(-1, $4::BIGINT) AS buckets (number) LEFT JOIN sums USING (number)
QUALIFY number >= 0
ORDER BY number

-- name: churn
-- The $3 folders that changed most of those at depth $2 below the folder $1; $4 are the mounts.
SELECT mount, prefix,
    sum(created + updated + deleted + moved)::BIGINT AS changes,
    sum(bytes_in)::BIGINT AS "bytesIn",
    sum(bytes_out)::BIGINT AS "bytesOut",
    sum(bytes_in - bytes_out)::BIGINT AS "netBytes"
FROM {growth}
WHERE depth = $2 AND ($1 = '' OR starts_with(prefix, $1 || '/')) AND {mounts}
GROUP BY mount, prefix
HAVING changes > 0
ORDER BY {order} DESC, mount, prefix
LIMIT $3
