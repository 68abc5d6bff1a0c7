-- name: request
-- From the first event that is kept to the last there is now. While one is open there is no second.
INSERT INTO metastore.sync_rebuilds
    (namespace, requested_by, epoch, first_sequence, sequence, target)
SELECT %(namespace)s, %(by)s, h.epoch, h.earliest - 1, h.earliest - 1, h.last
FROM bus.ingress_head h
ON CONFLICT ((true)) WHERE finished_at IS NULL DO NOTHING
RETURNING id

-- name: take
-- The open one, for the process whose turn it is.
SELECT id, namespace, epoch::text AS epoch, sequence, target, compared
FROM metastore.sync_rebuilds WHERE finished_at IS NULL
FOR UPDATE

-- name: forget_truth
DELETE FROM metastore.sync_truth

-- name: collect
-- The latest version of each node in the page, unless a later one is known.
INSERT INTO metastore.sync_truth AS t (key, version, change)
SELECT key, version, change
FROM jsonb_to_recordset(%(changes)s::jsonb) AS b (key text, version bigint, change jsonb)
ON CONFLICT (key) DO UPDATE SET version = excluded.version, change = excluded.change
WHERE excluded.version > t.version

-- name: advance
UPDATE metastore.sync_rebuilds
SET sequence = %(sequence)s, compared = %(compared)s,
    events = events + %(events)s, changed = changed + %(changed)s
WHERE id = %(id)s

-- name: window_end
-- Compared in pieces, so that nobody waits long for the rebuild's turn to end.
SELECT max(key) FROM (
    SELECT key FROM metastore.sync_truth WHERE key > %(after)s ORDER BY key LIMIT %(window)s
) AS part

-- name: untrue
-- Records that do not say what the log says of their node. A record in another state of deletion
-- than its node is untrue only if nobody but the sync brought it there: people may delete the
-- record of a living file, and keep that of a deleted one. What was refused is known to differ.
SELECT t.change
FROM metastore.sync_truth t JOIN metastore.records r
    ON r.namespace = %(namespace)s AND r.key = t.key
WHERE t.key > %(after)s AND t.key <= %(until)s AND (
    r.metadata -> 'filestore' IS DISTINCT FROM t.change -> 'view'
    OR (
        (r.deleted_at IS NOT NULL) <> (t.change -> 'view' ->> 'state' = 'deleted')
        AND NOT EXISTS (
            SELECT FROM metastore.record_audits a
            WHERE a.namespace = r.namespace AND a.key = r.key AND a.version = r.version
                AND a.actor <> %(actor)s AND a.deleted = (r.deleted_at IS NOT NULL)
        )
    )
) AND NOT EXISTS (
    SELECT FROM metastore.sync_refusals f
    WHERE f.namespace = r.namespace AND f.key = t.key
        AND (f.view ->> 'version')::bigint >= t.version
)
ORDER BY t.key

-- name: unknown
-- Records of nodes that no event in the log tells of: it may have been cut.
SELECT count(*) FROM metastore.records r
WHERE r.namespace = %(namespace)s AND r.metadata ? 'filestore'
    AND NOT EXISTS (SELECT FROM metastore.sync_truth t WHERE t.key = r.key)

-- name: finish
UPDATE metastore.sync_rebuilds
SET finished_at = clock_timestamp(), unknown = %(unknown)s, error = %(error)s
WHERE id = %(id)s
