-- name: of
-- What lies under each of these directories: the sum over the slots.
SELECT node_id, sum(size_bytes)::bigint, sum(files)::bigint, sum(directories)::bigint
FROM filestore.rollups WHERE node_id = ANY(%(ids)s) GROUP BY node_id

-- name: forget
-- Directories that are gone have nothing under them.
DELETE FROM filestore.rollups WHERE node_id = ANY(%(ids)s)

-- name: still
-- Nobody changes any sum until the transaction ends; commands wait before they have done anything.
LOCK TABLE filestore.rollups IN SHARE ROW EXCLUSIVE MODE

-- name: compare
-- Every directory whose sums differ from what its nodes add up to; none, if all is well.
WITH RECURSIVE up AS (
    SELECT parent_id AS node_id,
        CASE WHEN present THEN size_bytes ELSE 0 END AS size_bytes,
        (present AND kind = 'file')::integer::bigint AS files,
        (present AND kind = 'directory')::integer::bigint AS directories
    FROM (
        SELECT parent_id, size_bytes, kind, state IN ('active', 'inconsistent') AS present
        FROM filestore.nodes WHERE mount_id = %(mount_id)s AND state <> 'deleted'
    ) AS n
    WHERE parent_id IS NOT NULL AND present
    UNION ALL
    SELECT d.parent_id, up.size_bytes, up.files, up.directories
    FROM up JOIN filestore.nodes d ON d.id = up.node_id
    WHERE d.parent_id IS NOT NULL
), counted AS (
    SELECT node_id, sum(size_bytes)::bigint AS size_bytes, sum(files)::bigint AS files,
        sum(directories)::bigint AS directories
    FROM up GROUP BY node_id
), kept AS (
    SELECT r.node_id, sum(r.size_bytes)::bigint AS size_bytes, sum(r.files)::bigint AS files,
        sum(r.directories)::bigint AS directories
    FROM filestore.rollups r JOIN filestore.nodes n ON n.id = r.node_id
    WHERE n.mount_id = %(mount_id)s AND n.state <> 'deleted'
    GROUP BY r.node_id
)
SELECT node_id, n.path,
    coalesce(k.size_bytes, 0), coalesce(k.files, 0), coalesce(k.directories, 0),
    coalesce(c.size_bytes, 0), coalesce(c.files, 0), coalesce(c.directories, 0)
FROM kept k FULL JOIN counted c USING (node_id) JOIN filestore.nodes n ON n.id = node_id
WHERE (coalesce(k.size_bytes, 0), coalesce(k.files, 0), coalesce(k.directories, 0))
    <> (coalesce(c.size_bytes, 0), coalesce(c.files, 0), coalesce(c.directories, 0))
ORDER BY n.path

-- name: rewrite
-- The right sums in place of all slots of these directories.
WITH gone AS (DELETE FROM filestore.rollups WHERE node_id = ANY(%(ids)s) AND slot <> 0)
INSERT INTO filestore.rollups (node_id, slot, size_bytes, files, directories)
SELECT node_id, 0, size_bytes, files, directories
FROM unnest(%(ids)s::bigint[], %(sizes)s::bigint[], %(files)s::bigint[], %(directories)s::bigint[])
    AS r (node_id, size_bytes, files, directories)
ON CONFLICT (node_id, slot) DO UPDATE SET
    size_bytes = excluded.size_bytes, files = excluded.files, directories = excluded.directories
