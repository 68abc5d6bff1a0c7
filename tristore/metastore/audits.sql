-- name: page
-- The versions of a record, newest first, each with what was before it.
SELECT a.version, a.action, a.metadata::text, a.tags, a.owner, a.deleted, a.changed,
    a.restored_from, a.actor, a.correlation_id, a.at,
    b.version, b.metadata::text, b.tags, b.owner, b.deleted
FROM metastore.record_audits a
LEFT JOIN metastore.record_audits b
    ON b.namespace = a.namespace AND b.key = a.key AND b.version = a.version - 1
WHERE a.namespace = %(namespace)s AND a.key = %(key)s AND a.version < %(before)s
ORDER BY a.version DESC LIMIT %(limit)s

-- name: content
-- What a record held in one of its versions.
SELECT metadata::text, tags, owner FROM metastore.record_audits
WHERE namespace = %(namespace)s AND key = %(key)s AND version = %(version)s

-- name: known
SELECT EXISTS (
    SELECT FROM metastore.record_audits WHERE namespace = %(namespace)s AND key = %(key)s
)
