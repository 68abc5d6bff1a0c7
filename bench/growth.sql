-- name: activity
-- One day of changes to files: every folder of two levels on every mount gets its share.
SELECT n AS sequence, 'b' || n AS event_id, 0::INTEGER AS ordinal,
    $1::TIMESTAMPTZ + to_microseconds((n * 86400000000 // $2)::BIGINT) AS occurred_at,
    CASE n % 4 WHEN 0 THEN 'filestore.node.updated' WHEN 1 THEN 'filestore.node.deleted'
        ELSE 'filestore.node.created' END AS type,
    'put' AS command, 'm' || n % 4 AS mount,
    'top' || hash(n) % 50 || '/sub' || hash(n + 1) % 20 || '/f' || n % 1000 AS path,
    'top' || hash(n) % 50 AS folder, (n % 100000)::VARCHAR AS node_id, 'file' AS kind,
    (hash(n) % 1000000)::BIGINT AS size_bytes,
    CASE WHEN n % 4 = 1 THEN -1 ELSE 1 END * (hash(n) % 1000000)::BIGINT AS size_delta,
    'active' AS state, NULL::VARCHAR AS outcome, NULL::BIGINT AS duration_ms, 'ops' AS principal,
    n AS journal_id, NULL::VARCHAR AS correlation_id, NULL::VARCHAR AS previous_path,
    strftime($1::TIMESTAMPTZ, '%Y-%m-%d') AS day
FROM range($2::BIGINT) AS numbers (n)

-- name: growth
-- Its sums as the pipeline would merge them, without its detour over lists of folders.
WITH files AS (
    SELECT date_trunc('hour', occurred_at) AS hour, mount, string_split(path, '/') AS parts,
        size_delta, type
    FROM day_rows
), folders AS (
    SELECT hour, mount, parts[1] AS top, parts[1] || '/' || parts[2] AS sub,
        sum(greatest(size_delta, 0)) AS bytes_in, sum(greatest(-size_delta, 0)) AS bytes_out,
        count(*) FILTER (type = 'filestore.node.created') AS created,
        count(*) FILTER (type = 'filestore.node.updated') AS updated,
        count(*) FILTER (type = 'filestore.node.deleted') AS deleted
    FROM files GROUP BY ALL
)
SELECT hour, mount, coalesce(sub, top, '') AS prefix,
    (CASE WHEN sub IS NOT NULL THEN 2 WHEN top IS NOT NULL THEN 1 ELSE 0 END)::INTEGER AS depth,
    sum(bytes_in)::BIGINT AS bytes_in, sum(bytes_out)::BIGINT AS bytes_out,
    sum(bytes_in - bytes_out)::BIGINT AS net_bytes, sum(created)::BIGINT AS created,
    sum(updated)::BIGINT AS updated, sum(deleted)::BIGINT AS deleted, 0::BIGINT AS moved,
    strftime(hour, '%Y-%m') AS month
FROM folders
GROUP BY GROUPING SETS ((hour, mount, top, sub), (hour, mount, top), (hour, mount))
ORDER BY hour

-- name: busy_folders
SELECT folder, count(*) AS changes, sum(size_delta) AS net
FROM filestore_activity WHERE day = '{day}' GROUP BY folder ORDER BY changes DESC, folder
