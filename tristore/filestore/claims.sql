-- name: at
-- The claims that stand at exactly these paths.
SELECT path, subtree FROM filestore.claims
WHERE mount_id = %(mount_id)s AND path = ANY(%(paths)s)

-- name: holder
-- Who works on a path, or on a tree it lies in.
SELECT journal_id FROM filestore.claims
WHERE mount_id = %(mount_id)s
    AND (path = %(path)s OR (subtree AND path = ANY(%(above)s)))
LIMIT 1

-- name: under
-- Whether anything at or under a path is claimed; the empty path means the whole mount.
SELECT FROM filestore.claims
WHERE mount_id = %(mount_id)s AND (
    %(path)s = '' OR path = %(path)s OR (path > %(path)s || '/' AND path < %(path)s || '0')
)
LIMIT 1
