-- name: registered
-- The newest schema in use of each type that was registered at run time.
SELECT DISTINCT ON (type) type, version, schema
FROM bus.event_schemas
WHERE status = 'active'
ORDER BY type, version DESC
