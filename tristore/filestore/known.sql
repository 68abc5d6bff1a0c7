-- name: between
-- What is tracked behind one path up to another, in the order of a walk.
SELECT id, path, kind, state, size_bytes, inode, mtime_ns, etag, version, journal_id
FROM filestore.nodes
WHERE mount_id = %(mount_id)s AND path > %(after)s AND path <= %(through)s AND state <> 'deleted'
ORDER BY path LIMIT %(limit)s

-- name: beyond
-- The same up to the end of a directory, or of the mount.
SELECT id, path, kind, state, size_bytes, inode, mtime_ns, etag, version, journal_id
FROM filestore.nodes
WHERE mount_id = %(mount_id)s AND path > %(after)s AND state <> 'deleted'
    AND (%(below)s = '' OR path < %(below)s)
ORDER BY path LIMIT %(limit)s

-- name: at
-- Each path as one moment shows it: its node, the last node that was deleted there, and whether
-- an open command works on it, above it or below it.
SELECT p.path AS asked, n.id, n.path, n.kind, n.state, n.size_bytes, n.inode, n.mtime_ns, n.etag,
    n.version, n.journal_id,
    (
        SELECT max(d.id) FROM filestore.nodes d
        WHERE d.mount_id = %(mount_id)s AND d.path = p.path AND d.state = 'deleted'
    ) AS buried,
    EXISTS (
        SELECT FROM filestore.claims c WHERE c.mount_id = %(mount_id)s AND c.path = p.path
    ) OR EXISTS (
        SELECT FROM filestore.claims c
        WHERE c.mount_id = %(mount_id)s AND c.subtree
            AND (c.path = '' OR starts_with(p.path, c.path || '/'))
    ) OR EXISTS (
        SELECT FROM filestore.claims c
        WHERE c.mount_id = %(mount_id)s
            AND c.path > (p.path || '/') COLLATE "C" AND c.path < (p.path || '0') COLLATE "C"
    ) AS claimed
FROM unnest(%(paths)s::text[]) AS p (path)
LEFT JOIN filestore.nodes n
    ON n.mount_id = %(mount_id)s AND n.path = p.path AND n.state <> 'deleted'
