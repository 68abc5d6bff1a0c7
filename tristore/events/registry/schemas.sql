-- name: revision
-- Changes whenever a schema does; asked once a batch.
SELECT revision FROM bus.schema_head

-- name: lock
-- Before anything is decided: registrations go one after the other.
SELECT revision FROM bus.schema_head FOR UPDATE

-- name: advance
-- The number of the change that is being made.
UPDATE bus.schema_head SET revision = revision + 1 RETURNING revision

-- name: changed
-- What a process that knows everything up to `known` does not know.
SELECT type, version, status, schema, created_at, created_by, revision
FROM bus.event_schemas
WHERE revision > %(known)s
ORDER BY revision

-- name: versions
-- All versions of a type, newest first.
SELECT type, version, status, schema, created_at, created_by, revision
FROM bus.event_schemas
WHERE type = %(type)s
ORDER BY version DESC

-- name: holders
-- The versions of a type that have just this schema.
SELECT version FROM bus.event_schemas
WHERE type = %(type)s AND schema = %(schema)s::jsonb

-- name: page
-- Schemas after a position, in the order of type, then version; optionally of some types only.
SELECT type, version, status, schema, created_at, created_by, revision
FROM bus.event_schemas
WHERE (type, version) > (%(type)s, %(version)s)
    AND (%(exact)s::text IS NULL OR type = %(exact)s)
    AND (%(prefix)s::text IS NULL OR starts_with(type, %(prefix)s))
ORDER BY type, version
LIMIT %(limit)s

-- name: add
INSERT INTO bus.event_schemas (type, version, status, schema, created_by, revision)
VALUES (%(type)s, %(version)s, %(status)s, %(schema)s, %(created_by)s, %(revision)s)
RETURNING type, version, status, schema, created_at, created_by, revision

-- name: set_status
UPDATE bus.event_schemas SET status = %(status)s, revision = %(revision)s
WHERE type = %(type)s AND version = %(version)s
RETURNING type, version, status, schema, created_at, created_by, revision
