-- name: keep
-- Notes what could not be written. Of two refusals of one node the later version stays.
INSERT INTO metastore.sync_refusals AS r (
    namespace, key, reason, view, errors, sequence, ordinal, event_id, correlation_id,
    rules_version
)
SELECT %(namespace)s, key, reason, view, errors, sequence, ordinal, event_id, correlation_id,
    %(rules_version)s
FROM jsonb_to_recordset(%(refusals)s::jsonb) AS b (
    key text, reason text, view jsonb, errors jsonb, sequence bigint, ordinal integer,
    event_id text, correlation_id text
)
ON CONFLICT (namespace, key) DO UPDATE
SET reason = excluded.reason, view = excluded.view, errors = excluded.errors,
    sequence = excluded.sequence, ordinal = excluded.ordinal, event_id = excluded.event_id,
    correlation_id = excluded.correlation_id, rules_version = excluded.rules_version,
    at = excluded.at
WHERE excluded.view -> 'version' >= r.view -> 'version' OR r.reason = 'unreadable'

-- name: clear
-- What has been written since, in this version of the node or in a later one.
DELETE FROM metastore.sync_refusals r
USING unnest(%(keys)s::text[], %(versions)s::bigint[], %(event_ids)s::text[])
    AS b (key, version, event_id)
WHERE r.namespace = %(namespace)s AND (
    (r.key = b.key AND (r.view ->> 'version')::bigint <= b.version)
    OR (r.reason = 'unreadable' AND r.event_id = b.event_id)
)

-- name: due
-- Refused by other rules than those of today, or asked for again. What could not be read has no
-- view to try again; only a new reading of the log helps it.
SELECT view, sequence, ordinal, event_id, correlation_id
FROM metastore.sync_refusals
WHERE namespace = %(namespace)s AND rules_version IS DISTINCT FROM %(rules_version)s
    AND reason <> 'unreadable'
ORDER BY key
LIMIT %(limit)s

-- name: ask_again
UPDATE metastore.sync_refusals SET rules_version = NULL WHERE namespace = %(namespace)s

-- name: page
-- For people, by key.
SELECT key, reason, view, errors, sequence, event_id, correlation_id, at
FROM metastore.sync_refusals
WHERE namespace = %(namespace)s AND key > %(after)s
ORDER BY key
LIMIT %(limit)s

-- name: exist
SELECT EXISTS (SELECT FROM metastore.sync_refusals WHERE namespace = %(namespace)s)
