-- name: find
-- One record, deleted or not.
SELECT namespace, key, metadata::text, tags, owner, version, created_at, updated_at, created_by,
    updated_by, deleted_at
FROM metastore.records WHERE namespace = %(namespace)s AND key = %(key)s
