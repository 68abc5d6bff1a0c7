-- name: apply
-- The one way nodes change: an entry's step with its nodes, their versions, the sums above them
-- and the events that tell of it. Nothing happens unless the entry is still applying and its
-- owner's. A step that ends the entry gives its claims back.
WITH entry AS (
    UPDATE filestore.journal_entries j SET
        state = %(state)s,
        node_id = coalesce(%(node_id)s, j.node_id),
        progress = coalesce(%(progress)s::jsonb, j.progress),
        result = %(result)s::jsonb,
        error = %(error)s,
        bytes = j.bytes + %(bytes)s,
        nodes_affected = j.nodes_affected + %(nodes_affected)s,
        idempotency_key = CASE WHEN %(state)s <> 'failed' THEN j.idempotency_key END,
        plan = CASE
            WHEN %(state)s <> 'failed' OR j.idempotency_key IS NULL THEN j.plan
            ELSE j.plan || jsonb_build_object('idempotencyKey', j.idempotency_key)
        END,
        completed_at = CASE WHEN %(state)s <> 'applying' THEN clock_timestamp() END
    WHERE j.id = %(journal_id)s AND j.state = 'applying'
        AND j.owner IS NOT DISTINCT FROM %(owner)s
    RETURNING j.id, j.principal
), written AS (
    INSERT INTO filestore.nodes (
        id, mount_id, parent_id, path, name, kind, state, size_bytes, checksum, version, metadata,
        inode, mtime_ns, etag, journal_id, created_at, updated_at
    )
    SELECT n.* FROM entry, json_to_recordset(%(nodes)s::json) AS n (
        id bigint, mount_id integer, parent_id bigint, path text, name text, kind text, state text,
        size_bytes bigint, checksum text, version integer, metadata jsonb, inode bigint,
        mtime_ns bigint, etag text, journal_id bigint, created_at timestamptz,
        updated_at timestamptz
    )
    ON CONFLICT (id) DO UPDATE SET
        mount_id = excluded.mount_id, parent_id = excluded.parent_id, path = excluded.path,
        name = excluded.name, kind = excluded.kind, state = excluded.state,
        size_bytes = excluded.size_bytes, checksum = excluded.checksum,
        version = excluded.version, metadata = excluded.metadata, inode = excluded.inode,
        mtime_ns = excluded.mtime_ns, etag = excluded.etag, journal_id = excluded.journal_id,
        updated_at = excluded.updated_at
    RETURNING *
), kept AS (
    INSERT INTO filestore.snapshots (
        node_id, version, mount_id, path, state, size_bytes, checksum, metadata, journal_id,
        principal, at
    )
    SELECT w.id, w.version, w.mount_id, w.path, w.state, w.size_bytes, w.checksum, w.metadata,
        w.journal_id, entry.principal, w.updated_at
    FROM written w, entry
    -- A reconciliation may touch a node, its looks or its state, without a new version.
    ON CONFLICT (node_id, version) DO NOTHING
), counted AS (
    -- In the order of ids, so that writers who share a slot cannot wait for each other in a ring.
    INSERT INTO filestore.rollups (node_id, slot, size_bytes, files, directories)
    SELECT r.node_id, pg_backend_pid() %% 32, r.size_bytes, r.files, r.directories
    FROM entry, json_to_recordset(%(rollups)s::json)
        AS r (node_id bigint, size_bytes bigint, files bigint, directories bigint)
    ORDER BY r.node_id
    ON CONFLICT (node_id, slot) DO UPDATE SET
        size_bytes = rollups.size_bytes + excluded.size_bytes,
        files = rollups.files + excluded.files,
        directories = rollups.directories + excluded.directories
), told AS (
    INSERT INTO bus.outbox (event_id, source, body_hash, envelope)
    SELECT e.event_id, e.source, decode(e.body_hash, 'hex'), e.envelope
    FROM entry, ROWS FROM (
        json_to_recordset(%(events)s::json)
            AS (event_id text, source text, body_hash text, envelope text)
    ) WITH ORDINALITY AS e (event_id, source, body_hash, envelope, n)
    ORDER BY e.n
), released AS (
    DELETE FROM filestore.claims c USING entry
    WHERE c.journal_id = entry.id AND %(state)s <> 'applying'
)
SELECT count(*) FROM entry
