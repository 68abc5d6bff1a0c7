-- name: lock
-- The records at these addresses, held until the transaction ends; in one order for everybody, so
-- that no two writers wait for each other.
SELECT r.namespace, r.key, r.metadata::text, r.tags, r.owner, r.version,
    r.created_at, r.updated_at, r.created_by, r.updated_by, r.deleted_at
FROM metastore.records r
WHERE r.namespace = ANY (%(namespaces)s) AND (r.namespace, r.key) IN (
    SELECT a.namespace, a.key
    FROM unnest(%(namespace)b::text[], %(key)b::text[]) AS a (namespace, key)
)
ORDER BY r.namespace, r.key
FOR UPDATE

-- name: purged
-- Where the versions of new records go on from, if their keys were in use before.
SELECT p.namespace, p.key, p.version
FROM unnest(%(namespace)b::text[], %(key)b::text[]) AS a (namespace, key)
JOIN metastore.purges p USING (namespace, key)

-- name: store
-- Every version that is given becomes an audit row; the last of each record becomes the record. New
-- records are inserted in one order for everybody, for the same reason as they are locked in one. A
-- record that is not as it was when it was read is left alone, and the caller sees it missing.
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(versions)s::jsonb) AS g (
        namespace text, key text, version integer, action text, metadata jsonb, tags text[],
        owner text, deleted boolean, changed text[], restored_from integer, actor text,
        correlation_id text, known integer, last boolean, creator text
    )
), homes AS (
    -- The first record of a namespace makes it, without rules.
    INSERT INTO metastore.namespaces (name, created_by, updated_by)
    SELECT DISTINCT ON (namespace) namespace, actor, actor FROM given
    WHERE last AND known IS NULL ORDER BY namespace
    ON CONFLICT (name) DO NOTHING
), audited AS (
    INSERT INTO metastore.record_audits (namespace, key, version, action, metadata, tags, owner,
        deleted, changed, restored_from, actor, correlation_id, at)
    SELECT namespace, key, version, action, metadata, tags, owner, deleted, changed, restored_from,
        actor, correlation_id, statement_timestamp()
    FROM given
), updated AS (
    UPDATE metastore.records r
    SET metadata = g.metadata, tags = g.tags, owner = g.owner, version = g.version,
        updated_at = statement_timestamp(), updated_by = g.actor,
        deleted_at = CASE WHEN g.deleted THEN coalesce(r.deleted_at, statement_timestamp()) END
    FROM given g
    WHERE g.last AND g.known IS NOT NULL
        AND r.namespace = g.namespace AND r.key = g.key AND r.version = g.known
    RETURNING r.namespace, r.key, r.created_at, r.updated_at, r.deleted_at
), inserted AS (
    INSERT INTO metastore.records (namespace, key, metadata, tags, owner, version, created_at,
        updated_at, created_by, updated_by, deleted_at)
    SELECT namespace, key, metadata, tags, owner, version, statement_timestamp(),
        statement_timestamp(), creator, actor, CASE WHEN deleted THEN statement_timestamp() END
    FROM given WHERE last AND known IS NULL
    ORDER BY namespace COLLATE "C", key COLLATE "C"
    RETURNING namespace, key, created_at, updated_at, deleted_at
)
SELECT * FROM updated UNION ALL SELECT * FROM inserted

-- name: purge
-- A record and its content, in every version, are gone; that they were stays.
WITH given AS (
    SELECT * FROM jsonb_to_recordset(%(versions)s::jsonb) AS g (
        namespace text, key text, version integer, known integer, changed text[], actor text,
        correlation_id text
    )
), gone AS (
    DELETE FROM metastore.records r USING given g
    WHERE r.namespace = g.namespace AND r.key = g.key AND r.version = g.known
    RETURNING r.namespace, r.key, r.created_at, statement_timestamp(), statement_timestamp()
), blanked AS (
    UPDATE metastore.record_audits a SET metadata = NULL, tags = NULL, owner = NULL, changed = '{}'
    FROM given g WHERE a.namespace = g.namespace AND a.key = g.key
), audited AS (
    INSERT INTO metastore.record_audits (namespace, key, version, action, deleted, changed, actor,
        correlation_id, at)
    SELECT namespace, key, version, 'purge', true, changed, actor, correlation_id,
        statement_timestamp()
    FROM given
), remembered AS (
    INSERT INTO metastore.purges (namespace, key, version)
    SELECT namespace, key, version FROM given
    ON CONFLICT (namespace, key) DO UPDATE SET version = excluded.version
)
SELECT * FROM gone
