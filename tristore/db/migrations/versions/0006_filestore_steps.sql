-- The one way nodes change: steps of journal entries, each with its nodes, their versions, the sums
-- above them and the events that tell of it. Answers the entries whose step was taken.
--
-- `steps` lists {journal_id, owner, state, node_id, progress, result, error, bytes, nodes_affected,
-- nodes, rollups, events}. Nothing of a step happens unless its entry is still applying and its
-- owner's. A step that ends the entry gives its claims back. The claims of open entries do not
-- overlap, so no two steps write the same node; sums above them they may share.
--
-- A function for the reason filestore.begin_entry is one: its plans use the indexes from the first
-- row on. `ids` names the entries once more, because a plan made while the journal was empty would
-- walk through all of it to find them.
CREATE FUNCTION filestore.apply_steps(steps json)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    ids bigint[] := ARRAY(SELECT (s ->> 'journal_id')::bigint FROM json_array_elements(steps) AS s);
BEGIN
    RETURN QUERY WITH given AS MATERIALIZED (
        SELECT * FROM json_to_recordset(steps) AS s (
            journal_id bigint, owner uuid, state text, node_id bigint, progress jsonb,
            result jsonb, error text, bytes bigint, nodes_affected integer,
            nodes json, rollups json, events json
        )
    ), entry AS (
        UPDATE filestore.journal_entries j SET
            state = g.state,
            node_id = coalesce(g.node_id, j.node_id),
            progress = coalesce(g.progress, j.progress),
            result = g.result,
            error = g.error,
            bytes = j.bytes + g.bytes,
            nodes_affected = j.nodes_affected + g.nodes_affected,
            idempotency_key = CASE WHEN g.state <> 'failed' THEN j.idempotency_key END,
            plan = CASE
                WHEN g.state <> 'failed' OR j.idempotency_key IS NULL THEN j.plan
                ELSE j.plan || jsonb_build_object('idempotencyKey', j.idempotency_key)
            END,
            completed_at = CASE WHEN g.state <> 'applying' THEN clock_timestamp() END
        FROM given g
        WHERE j.id = ANY (ids) AND j.id = g.journal_id AND j.state = 'applying'
            AND j.owner IS NOT DISTINCT FROM g.owner
        RETURNING j.id, j.principal, j.state, g.nodes, g.rollups, g.events
    ), written AS (
        INSERT INTO filestore.nodes (
            id, mount_id, parent_id, path, name, kind, state, size_bytes, checksum, version,
            metadata, inode, mtime_ns, etag, journal_id, created_at, updated_at
        )
        SELECT n.* FROM entry, json_to_recordset(entry.nodes) AS n (
            id bigint, mount_id integer, parent_id bigint, path text, name text, kind text,
            state text, size_bytes bigint, checksum text, version integer, metadata jsonb,
            inode bigint, mtime_ns bigint, etag text, journal_id bigint,
            created_at timestamptz, updated_at timestamptz
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
        FROM written w JOIN entry ON entry.id = w.journal_id
        -- A reconciliation may touch a node, its looks or its state, without a new version.
        ON CONFLICT (node_id, version) DO NOTHING
    ), counted AS (
        -- In the order of ids, so that writers who share a slot cannot wait for each other in a
        -- ring.
        INSERT INTO filestore.rollups (node_id, slot, size_bytes, files, directories)
        SELECT r.node_id, mod(pg_backend_pid(), 32), sum(r.size_bytes), sum(r.files),
            sum(r.directories)
        FROM entry, json_to_recordset(entry.rollups)
            AS r (node_id bigint, size_bytes bigint, files bigint, directories bigint)
        GROUP BY r.node_id
        ORDER BY r.node_id
        ON CONFLICT (node_id, slot) DO UPDATE SET
            size_bytes = rollups.size_bytes + excluded.size_bytes,
            files = rollups.files + excluded.files,
            directories = rollups.directories + excluded.directories
    ), told AS (
        INSERT INTO bus.outbox (event_id, source, body_hash, envelope)
        SELECT e.event_id, e.source, decode(e.body_hash, 'hex'), e.envelope
        FROM entry, ROWS FROM (
            json_to_recordset(entry.events)
                AS (event_id text, source text, body_hash text, envelope text)
        ) WITH ORDINALITY AS e (event_id, source, body_hash, envelope, n)
        ORDER BY entry.id, e.n
    ), released AS (
        DELETE FROM filestore.claims c USING entry
        WHERE c.journal_id = ANY (ids) AND c.journal_id = entry.id AND entry.state <> 'applying'
    )
    SELECT id FROM entry;
END
$$;
