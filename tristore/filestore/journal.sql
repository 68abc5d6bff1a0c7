-- name: begin
-- See 0003_filestore_begin.sql. One after another, each seeing what the ones before it wrote.
SELECT begun.status, begun.journal_id, begun.nodes, begun.fresh
FROM ROWS FROM (
    jsonb_to_recordset(%(intents)s::jsonb) AS (entry jsonb, wanted jsonb, above jsonb)
) WITH ORDINALITY AS given (entry, wanted, above, n),
    filestore.begin_entry(given.entry, given.wanted, given.above) AS begun
ORDER BY given.n

-- name: known
-- What became of the command that used an Idempotency-Key before.
SELECT id, state, request_hash, result, error FROM filestore.journal_entries WHERE id = %(id)s

-- name: by_key
-- The same, found by the key.
SELECT id, state, request_hash, result, error FROM filestore.journal_entries
WHERE token_id IS NOT DISTINCT FROM %(token_id)s::uuid AND idempotency_key = %(key)s

-- name: entry
-- One entry for a reader who may see these mounts.
SELECT j.id, j.command, j.state, m.name AS mount, j.path, t.name AS target_mount, j.target_path,
    j.node_id, j.error, j.principal,
    coalesce(j.idempotency_key, j.plan ->> 'idempotencyKey') AS idempotency_key,
    j.correlation_id, j.bytes,
    j.nodes_affected, j.started_at, j.completed_at, j.progress
FROM filestore.journal_entries j
JOIN filestore.mounts m ON m.id = j.mount_id
LEFT JOIN filestore.mounts t ON t.id = j.target_mount_id
WHERE j.id = %(id)s AND (%(mounts)s::text[] IS NULL
    OR (m.name = ANY(%(mounts)s) AND coalesce(t.name, m.name) = ANY(%(mounts)s)))

-- name: open_entries
-- What recovery needs to know of entries that are still applying.
SELECT id, command, mount_id, path, target_mount_id, target_path, plan, progress, owner,
    principal, token_id, idempotency_key, correlation_id, bytes, nodes_affected, started_at
FROM filestore.journal_entries
WHERE id = ANY(%(ids)s) AND state = 'applying'
ORDER BY id

-- name: is_open
-- Whether an entry is under way and still its owner's.
SELECT FROM filestore.journal_entries
WHERE id = %(id)s AND state = 'applying' AND owner = %(owner)s

-- name: take
-- Another's entry becomes one's own; of two who try, one does.
UPDATE filestore.journal_entries SET owner = %(owner)s
WHERE id = %(id)s AND state = 'applying' AND owner IS NOT DISTINCT FROM %(before)s

-- name: newest
-- The last number given to an entry, visible or not.
SELECT last_value FROM filestore.journal_entries_id_seq

-- name: inserting
-- The transactions that may have taken a number and are not yet over.
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'advisory' AND classid = 7441 AND objid = 0 AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: oldest_open
-- Entries from here on are not told yet: this one may still fail or complete.
SELECT min(journal_id) FROM filestore.claims

-- name: feed
-- Finished entries in order, below the oldest open one.
SELECT j.id, j.command, j.state, m.name AS mount, j.path, t.name AS target_mount, j.target_path,
    j.node_id, j.error, j.principal,
    coalesce(j.idempotency_key, j.plan ->> 'idempotencyKey') AS idempotency_key,
    j.correlation_id, j.bytes,
    j.nodes_affected, j.started_at, j.completed_at, j.progress
FROM filestore.journal_entries j
JOIN filestore.mounts m ON m.id = j.mount_id
LEFT JOIN filestore.mounts t ON t.id = j.target_mount_id
WHERE j.id > %(after)s AND j.id < %(below)s AND j.state <> 'applying'
    AND (%(mounts)s::text[] IS NULL
        OR (m.name = ANY(%(mounts)s) AND coalesce(t.name, m.name) = ANY(%(mounts)s)))
ORDER BY j.id LIMIT %(limit)s
