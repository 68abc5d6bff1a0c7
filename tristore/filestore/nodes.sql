-- name: by_id
SELECT n.id, n.mount_id, m.name AS mount, n.parent_id, n.path, n.name, n.kind, n.state,
    n.size_bytes, n.checksum, n.version, n.metadata, n.inode, n.mtime_ns, n.etag, n.journal_id,
    n.created_at, n.updated_at
FROM filestore.nodes n JOIN filestore.mounts m ON m.id = n.mount_id
WHERE n.id = %(id)s

-- name: by_path
-- What stands at a path now; a deleted node does not.
SELECT n.id, n.mount_id, %(mount)s AS mount, n.parent_id, n.path, n.name, n.kind, n.state,
    n.size_bytes, n.checksum, n.version, n.metadata, n.inode, n.mtime_ns, n.etag, n.journal_id,
    n.created_at, n.updated_at
FROM filestore.nodes n
WHERE n.mount_id = %(mount_id)s AND n.path = %(path)s AND n.state <> 'deleted'

-- name: at_paths
-- The same for many paths.
SELECT n.id, n.mount_id, %(mount)s AS mount, n.parent_id, n.path, n.name, n.kind, n.state,
    n.size_bytes, n.checksum, n.version, n.metadata, n.inode, n.mtime_ns, n.etag, n.journal_id,
    n.created_at, n.updated_at
FROM filestore.nodes n
WHERE n.mount_id = %(mount_id)s AND n.path = ANY(%(paths)s) AND n.state <> 'deleted'

-- name: children
-- What lies directly in a directory, by name.
SELECT n.id, n.mount_id, m.name AS mount, n.parent_id, n.path, n.name, n.kind, n.state,
    n.size_bytes, n.checksum, n.version, n.metadata, n.inode, n.mtime_ns, n.etag, n.journal_id,
    n.created_at, n.updated_at
FROM filestore.nodes n JOIN filestore.mounts m ON m.id = n.mount_id
WHERE n.parent_id = %(id)s AND n.name > %(after)s AND n.state <> 'deleted'
ORDER BY n.name LIMIT %(limit)s

-- name: within
-- The tree under a directory in the order of paths; '0' is the character after '/'.
SELECT n.id, n.mount_id, %(mount)s AS mount, n.parent_id, n.path, n.name, n.kind, n.state,
    n.size_bytes, n.checksum, n.version, n.metadata, n.inode, n.mtime_ns, n.etag, n.journal_id,
    n.created_at, n.updated_at
FROM filestore.nodes n
WHERE n.mount_id = %(mount_id)s AND n.state <> 'deleted'
    AND n.path > %(after)s AND n.path < %(below)s
ORDER BY n.path LIMIT %(limit)s

-- name: longer
-- Whether a path under a directory has more than so many bytes.
SELECT true FROM filestore.nodes n
WHERE n.mount_id = %(mount_id)s AND n.state <> 'deleted'
    AND n.path > %(after)s AND n.path < %(below)s AND octet_length(n.path) > %(bytes)s
LIMIT 1

-- name: within_kind
-- The same for one kind only.
SELECT n.id, n.mount_id, %(mount)s AS mount, n.parent_id, n.path, n.name, n.kind, n.state,
    n.size_bytes, n.checksum, n.version, n.metadata, n.inode, n.mtime_ns, n.etag, n.journal_id,
    n.created_at, n.updated_at
FROM filestore.nodes n
WHERE n.mount_id = %(mount_id)s AND n.state <> 'deleted' AND n.kind = %(kind)s
    AND n.path > %(after)s AND n.path < %(below)s
    AND (%(state)s::text IS NULL OR n.state = %(state)s)
ORDER BY n.path LIMIT %(limit)s

-- name: within_state
-- The same for one state of those that are not deleted.
SELECT n.id, n.mount_id, %(mount)s AS mount, n.parent_id, n.path, n.name, n.kind, n.state,
    n.size_bytes, n.checksum, n.version, n.metadata, n.inode, n.mtime_ns, n.etag, n.journal_id,
    n.created_at, n.updated_at
FROM filestore.nodes n
WHERE n.mount_id = %(mount_id)s AND n.state = %(state)s AND n.state <> 'deleted'
    AND n.path > %(after)s AND n.path < %(below)s
    AND (%(kind)s::text IS NULL OR n.kind = %(kind)s)
ORDER BY n.path LIMIT %(limit)s

-- name: within_deleted
-- Deleted nodes; one path may have seen many.
SELECT n.id, n.mount_id, %(mount)s AS mount, n.parent_id, n.path, n.name, n.kind, n.state,
    n.size_bytes, n.checksum, n.version, n.metadata, n.inode, n.mtime_ns, n.etag, n.journal_id,
    n.created_at, n.updated_at
FROM filestore.nodes n
WHERE n.mount_id = %(mount_id)s AND n.state = 'deleted'
    AND (n.path, n.id) > (%(after)s, %(after_id)s) AND n.path < %(below)s
    AND (%(kind)s::text IS NULL OR n.kind = %(kind)s)
ORDER BY n.path, n.id LIMIT %(limit)s

-- name: history
-- A node's versions, the newest first.
SELECT s.node_id, s.version, m.name AS mount, s.path, s.state, s.size_bytes, s.checksum,
    s.metadata, s.journal_id, s.principal, s.at
FROM filestore.snapshots s JOIN filestore.mounts m ON m.id = s.mount_id
WHERE s.node_id = %(id)s AND s.version < %(before)s
ORDER BY s.version DESC LIMIT %(limit)s

-- name: fresh_ids
SELECT nextval('filestore.nodes_id_seq') FROM generate_series(1, %(count)s)
