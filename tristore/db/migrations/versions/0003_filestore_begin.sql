-- Begins a journal entry: takes the locks, claims the paths, says what stands there.
--
-- A function, because each of its statements must see what was committed before the locks were
-- granted, and because a command should cost one round trip. `wanted` lists the paths to claim:
-- {mount_id, path, subtree, must, version, kind}, and `above` the directories over them that are
-- not wanted themselves, each once, with the root as "": {mount_id, path, makes: whether it is to be
-- made where it is absent, and so claimed too}.
--
-- `status` is one of
--   begun    the entry exists and the claims are held; `nodes` are the rows found at the places,
--            `fresh` ids for those without one, in the order of mount and path
--   blocked  another entry, `journal_id`, holds one of the paths; nothing was written
--   changed  something came or went meanwhile; nothing was written, ask again at once
--   refused  a path is not as it must be; nothing was written, and `nodes` shows why
--   known    the Idempotency-Key belongs to the entry `journal_id`; nothing was written
--
-- Statistics of a young table would choose scans that are wrong an hour later, and the plans of a
-- function are kept: so the indexes are all there is to choose from, and nothing is planned twice.
CREATE FUNCTION filestore.begin_entry(entry jsonb, wanted jsonb, above jsonb)
RETURNS TABLE (status text, journal_id bigint, nodes text, fresh bigint[])
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    made filestore.journal_entries := jsonb_populate_record(NULL::filestore.journal_entries, entry);
    w_mounts integer[];
    w_paths text[];
    w_subtrees boolean[];
    a_mounts integer[];
    a_paths text[];
    a_makes boolean[];
    mount record;
    blocker bigint;
    found_nodes text;
    absent bigint;
    is_refused boolean;
    is_changed boolean;
BEGIN
    IF made.idempotency_key IS NOT NULL THEN
        RETURN QUERY SELECT 'known', j.id, NULL::text, NULL::bigint[]
        FROM filestore.journal_entries j
        WHERE j.token_id IS NOT DISTINCT FROM made.token_id
            AND j.idempotency_key = made.idempotency_key;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;

    SELECT array_agg(w.mount_id), array_agg(w.path), array_agg(w.subtree)
    INTO w_mounts, w_paths, w_subtrees
    FROM jsonb_to_recordset(wanted) AS w (mount_id integer, path text, subtree boolean);
    SELECT array_agg(a.mount_id), array_agg(a.path), array_agg(a.makes)
    INTO a_mounts, a_paths, a_makes
    FROM jsonb_to_recordset(above) AS a (mount_id integer, path text, makes boolean);

    -- For readers of the feed: whoever is about to take a number holds this lock (journal.sql).
    PERFORM pg_advisory_xact_lock_shared(7441, 0);
    FOR mount IN
        SELECT w.mount_id AS id, bool_or(w.subtree) AS whole
        FROM unnest(w_mounts, w_subtrees) AS w (mount_id, subtree) GROUP BY 1 ORDER BY 1
    LOOP
        IF mount.whole THEN
            PERFORM pg_advisory_xact_lock(7442, mount.id);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(7442, mount.id);
        END IF;
    END LOOP;

    SELECT c.journal_id INTO blocker
    FROM unnest(a_mounts, a_paths) AS a (mount_id, path)
    JOIN filestore.claims c ON c.mount_id = a.mount_id AND c.path = a.path COLLATE "C"
    WHERE c.subtree
    LIMIT 1;
    IF blocker IS NULL AND true = ANY (w_subtrees) THEN
        SELECT c.journal_id INTO blocker
        FROM unnest(w_mounts, w_paths, w_subtrees) AS w (mount_id, path, subtree)
        JOIN filestore.claims c ON c.mount_id = w.mount_id
            AND c.path > (w.path || '/') COLLATE "C" AND c.path < (w.path || '0') COLLATE "C"
        WHERE w.subtree
        LIMIT 1;
    END IF;
    IF blocker IS NOT NULL THEN
        RETURN QUERY SELECT 'blocked', blocker, NULL::text, NULL::bigint[];
        RETURN;
    END IF;

    made.id := nextval('filestore.journal_entries_id_seq');
    -- In the order of mount and path: whoever waits for a claim holds none that comes after it.
    INSERT INTO filestore.claims (mount_id, path, subtree, journal_id)
    SELECT p.mount_id, p.path, p.subtree, made.id FROM (
        SELECT w.mount_id, w.path, w.subtree
        FROM unnest(w_mounts, w_paths, w_subtrees) AS w (mount_id, path, subtree)
        UNION ALL
        SELECT a.mount_id, a.path, false
        FROM unnest(a_mounts, a_paths, a_makes) AS a (mount_id, path, makes)
        WHERE a.makes AND NOT EXISTS (
            SELECT FROM filestore.nodes n
            WHERE n.mount_id = a.mount_id AND n.path = a.path COLLATE "C"
                AND n.state <> 'deleted' AND n.state <> 'missing'
        )
    ) AS p
    ORDER BY p.mount_id, p.path COLLATE "C"
    ON CONFLICT DO NOTHING;

    -- Only now: what stands at a path can no longer change.
    SELECT
        coalesce(json_agg(json_build_array(
            n.id, n.mount_id, n.parent_id, n.path, n.name, n.kind, n.state, n.size_bytes,
            n.checksum, n.version, n.metadata, n.inode, n.mtime_ns, n.etag, n.journal_id,
            n.created_at, n.updated_at
        )) FILTER (WHERE n.id IS NOT NULL), '[]')::text,
        count(*) FILTER (WHERE n.id IS NULL),
        bool_or(coalesce(CASE
            WHEN NOT p.asked THEN n.kind = 'file'
            ELSE CASE p.must
                    WHEN 'exist' THEN n.id IS NULL
                    WHEN 'empty' THEN n.id IS NULL OR EXISTS (
                        SELECT FROM filestore.nodes c
                        WHERE c.parent_id = n.id AND c.state <> 'deleted'
                    )
                    WHEN 'present' THEN n.id IS NULL OR n.state = 'missing'
                    WHEN 'free' THEN n.id IS NOT NULL
                    WHEN 'unused' THEN n.id IS NOT NULL AND n.state <> 'missing'
                    ELSE false
                END
                OR (p.version IS NOT NULL AND n.version IS DISTINCT FROM p.version)
                OR (p.kind IS NOT NULL AND n.kind <> p.kind)
        END, false)),
        -- A claim is another's, or a directory to be made is not claimed.
        bool_or((p.asked OR (p.makes AND (n.id IS NULL OR n.state = 'missing')))
            AND NOT EXISTS (
                SELECT FROM filestore.claims c
                WHERE c.mount_id = p.mount_id AND c.path = p.path COLLATE "C"
                    AND c.journal_id = made.id
            ))
    INTO found_nodes, absent, is_refused, is_changed
    FROM (
        SELECT w.mount_id, w.path, true AS asked, false AS makes, w.must, w.version, w.kind
        FROM jsonb_to_recordset(wanted)
            AS w (mount_id integer, path text, must text, version integer, kind text)
        UNION ALL
        SELECT a.mount_id, a.path, false, a.makes, NULL, NULL, NULL
        FROM unnest(a_mounts, a_paths, a_makes) AS a (mount_id, path, makes)
    ) AS p
    LEFT JOIN filestore.nodes n
        ON n.mount_id = p.mount_id AND n.path = p.path COLLATE "C" AND n.state <> 'deleted';

    IF is_changed OR is_refused THEN
        DELETE FROM filestore.claims c WHERE c.journal_id = made.id;
        SELECT c.journal_id INTO blocker
        FROM unnest(w_mounts || a_mounts, w_paths || a_paths) AS w (mount_id, path)
        JOIN filestore.claims c ON c.mount_id = w.mount_id AND c.path = w.path COLLATE "C"
        WHERE is_changed
        LIMIT 1;
        RETURN QUERY SELECT
            CASE
                WHEN blocker IS NOT NULL THEN 'blocked'
                WHEN is_changed THEN 'changed'
                ELSE 'refused'
            END,
            coalesce(blocker, made.id), found_nodes, NULL::bigint[];
        RETURN;
    END IF;

    INSERT INTO filestore.journal_entries (
        id, command, mount_id, path, target_mount_id, target_path, plan, owner, principal,
        token_id, idempotency_key, request_hash, correlation_id
    ) VALUES (
        made.id, made.command, made.mount_id, made.path, made.target_mount_id, made.target_path,
        coalesce(made.plan, '{}'), made.owner, made.principal, made.token_id,
        made.idempotency_key, made.request_hash, made.correlation_id
    );
    RETURN QUERY SELECT 'begun', made.id, found_nodes, ARRAY(
        SELECT nextval('filestore.nodes_id_seq') FROM generate_series(1, absent)
    );
END
$$;
