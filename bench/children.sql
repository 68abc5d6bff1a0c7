-- name: directory
-- A directory right below the root of the mount.
INSERT INTO filestore.nodes (mount_id, parent_id, path, name, kind, state, journal_id)
SELECT m.id, r.id, %(name)s, %(name)s, 'directory', 'active', 0
FROM filestore.mounts m JOIN filestore.nodes r ON r.mount_id = m.id AND r.path = ''
WHERE m.name = %(mount)s
RETURNING id

-- name: fill
-- Files and, one in a hundred, directories, as an import would have left them.
INSERT INTO filestore.nodes
    (mount_id, parent_id, path, name, kind, state, size_bytes, inode, mtime_ns, journal_id)
SELECT d.mount_id, d.id, d.path || '/' || lpad(n::text, 8, '0'), lpad(n::text, 8, '0'),
    CASE WHEN n %% 100 = 0 THEN 'directory' ELSE 'file' END, 'active', 1000, n, n, 0
FROM filestore.nodes d, generate_series(1, %(count)s) AS n
WHERE d.id = %(directory)s

-- name: sums
-- Every slot in use, as after many writers.
INSERT INTO filestore.rollups (node_id, slot, size_bytes, files, directories)
SELECT n.id, s, 1000, 1, 0 FROM filestore.nodes n, generate_series(0, 31) AS s
WHERE n.kind = 'directory' AND (n.id = %(directory)s OR n.parent_id = %(directory)s)
ON CONFLICT DO NOTHING

-- name: bare
SELECT * FROM filestore.nodes
WHERE parent_id = %(directory)s AND state <> 'deleted' AND name > %(after)s
ORDER BY name LIMIT 100

-- name: bare_sum
SELECT sum(size_bytes), sum(files), sum(directories) FROM filestore.rollups
WHERE node_id = %(directory)s
