-- name: made
-- The declared indexes there are, and whether each is whole: one whose making was cut short stays
-- behind, is kept up by every write, and answers nothing.
SELECT c.relname, i.indisvalid AND i.indisready
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'metastore.records'::regclass AND starts_with(c.relname, %(prefix)s)

-- name: ready
-- How many of some indexes are whole.
SELECT count(*)
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'metastore.records'::regclass AND c.relname = ANY (%(names)s::name[])
    AND i.indisvalid AND i.indisready

-- name: take_turn
-- One process at a time. Never waited for: who waits in a statement keeps an index from being made.
SELECT pg_try_advisory_lock(hashtextextended('tristore.metastore.indexes', 0))

-- name: end_turn
SELECT pg_advisory_unlock(hashtextextended('tristore.metastore.indexes', 0))

-- name: make_ordered
CREATE INDEX CONCURRENTLY {name} ON metastore.records (({expression}), id)
    WHERE namespace = {namespace} AND deleted_at IS NULL AND ({expression}) IS NOT NULL

-- name: make_words
CREATE INDEX CONCURRENTLY {name} ON metastore.records
    USING gin (metastore.record_text({paths}::jsonb, metadata))
    WHERE namespace = {namespace} AND deleted_at IS NULL

-- name: drop
DROP INDEX CONCURRENTLY IF EXISTS metastore.{name}

-- name: analyze
-- The planner knows nothing of a new expression before this.
ANALYZE metastore.records
