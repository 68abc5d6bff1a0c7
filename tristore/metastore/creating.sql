-- name: create
-- A record that is not there yet, with its audit row and its event, in one statement: it is
-- committed in the round trip that brings it. Fails as a whole where the record is there, where the
-- rules have another version than the one it was checked with, or where the key was in use before.
WITH checked AS MATERIALIZED (
    SELECT metastore.begin_create(%(namespace)s, %(key)s, %(rules)s)
), made AS (
    INSERT INTO metastore.records (namespace, key, metadata, tags, owner, created_at, updated_at,
        created_by, updated_by)
    SELECT %(namespace)s, %(key)s, %(metadata)s::jsonb, %(tags)s::text[], %(owner)s,
        statement_timestamp(), statement_timestamp(), %(actor)s, %(actor)s
    FROM checked
    RETURNING *
), audited AS (
    INSERT INTO metastore.record_audits (namespace, key, version, action, metadata, tags, owner,
        changed, actor, correlation_id, at)
    SELECT namespace, key, version, 'create', metadata, tags, owner, %(changed)s::text[],
        %(actor)s, %(correlation_id)s, created_at
    FROM made
), told AS (
    INSERT INTO bus.outbox (event_id, source, body_hash, envelope)
    SELECT %(event_id)s, %(source)s, %(body_hash)s, %(envelope)s FROM made
)
SELECT created_at FROM made
