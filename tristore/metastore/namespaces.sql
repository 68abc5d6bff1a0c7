-- name: find
-- Namespaces by name.
SELECT name, schema, allowed_tags, require_owner, key_pattern, indexes, text_fields, version,
    created_at, created_by, updated_at, updated_by
FROM metastore.namespaces WHERE name = ANY (%(names)s)

-- name: page
-- Namespaces in the order of their names, of those a token may see.
SELECT name, schema, allowed_tags, require_owner, key_pattern, indexes, text_fields, version,
    created_at, created_by, updated_at, updated_by
FROM metastore.namespaces
WHERE name > %(after)s AND (%(allowed)s::text[] IS NULL OR name = ANY (%(allowed)s))
ORDER BY name LIMIT %(limit)s

-- name: hold
-- The versions of rules, which then cannot change until the transaction ends.
SELECT name, version FROM metastore.hold_rules(%(names)s)

-- name: take
-- Waits for the writers that hold the rules, and keeps others out until the transaction ends.
SELECT set_config('lock_timeout', '4s', true), pg_advisory_xact_lock(metastore.rules_lock(%(name)s))

-- name: put
INSERT INTO metastore.namespaces AS n (name, schema, allowed_tags, require_owner, key_pattern,
    indexes, text_fields, created_by, updated_by)
VALUES (%(name)s, %(schema)s, %(allowed_tags)s, %(require_owner)s, %(key_pattern)s,
    %(indexes)s, %(text_fields)s, %(actor)s, %(actor)s)
ON CONFLICT (name) DO UPDATE
SET schema = excluded.schema, allowed_tags = excluded.allowed_tags,
    require_owner = excluded.require_owner, key_pattern = excluded.key_pattern,
    indexes = excluded.indexes, text_fields = excluded.text_fields, version = n.version + 1,
    updated_at = clock_timestamp(), updated_by = excluded.updated_by
RETURNING name, schema, allowed_tags, require_owner, key_pattern, indexes, text_fields, version,
    created_at, created_by, updated_at, updated_by

-- name: scan
-- The next live records of a namespace, for a look at which of them fit its rules.
SELECT namespace, key, metadata::text, tags, owner, version, created_at, updated_at, created_by,
    updated_by, deleted_at
FROM metastore.records
WHERE namespace = %(name)s AND key > %(after)s AND deleted_at IS NULL
ORDER BY key LIMIT %(limit)s
