-- name: record
INSERT INTO metastore.records (namespace, key, metadata, tags, created_by, updated_by)
VALUES ('bare', %(key)s, %(metadata)s::jsonb, %(tags)s, 'bench', 'bench')

-- name: audit
INSERT INTO metastore.record_audits (namespace, key, version, action, metadata, tags, changed, actor)
VALUES ('bare', %(key)s, 1, 'create', %(metadata)s::jsonb, %(tags)s, '{metadata.n}', 'bench')

-- name: event
INSERT INTO bus.outbox (event_id, source, body_hash, envelope, state)
VALUES (%(key)s, 'bench', '\x00', %(envelope)s, 'done')

-- name: records
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS g (key text, metadata jsonb, tags text[])
), audited AS (
    INSERT INTO metastore.record_audits (namespace, key, version, action, metadata, tags, changed,
        actor)
    SELECT 'bare', key, 1, 'create', metadata, tags, '{metadata.n}', 'bench' FROM given
)
INSERT INTO metastore.records (namespace, key, metadata, tags, created_by, updated_by)
SELECT 'bare', key, metadata, tags, 'bench', 'bench' FROM given

-- name: events
INSERT INTO bus.outbox (event_id, source, body_hash, envelope, state)
SELECT key, 'bench', '\x00', %(envelope)s, 'done'
FROM jsonb_to_recordset(%(rows)s::jsonb) AS g (key text)
