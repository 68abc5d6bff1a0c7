-- name: note
-- One row a path, in the order of paths so that two who note the same do not lock each other out.
-- A path that waits already is only marked: whoever is settling it now must look again.
INSERT INTO filestore.drifts AS d (mount_id, path, reason, cause, correlation_id)
SELECT %(mount_id)s, f.path, f.reason, %(cause)s, %(correlation_id)s
FROM unnest(%(paths)s::text[], %(reasons)s::text[]) AS f (path, reason)
ORDER BY f.path COLLATE "C"
ON CONFLICT (mount_id, path) DO UPDATE
SET reason = excluded.reason, detected_at = clock_timestamp(),
    not_before = least(d.not_before, clock_timestamp())
RETURNING path, xmax = 0 AS fresh

-- name: follow
-- What came with a directory: settled like the rest, without being told as drift. It counts as
-- found when the directory was, so whoever waits for that waits for all of it.
INSERT INTO filestore.drifts (mount_id, path, reason, cause, correlation_id, detected_at)
SELECT %(mount_id)s, f.path, %(reason)s, %(cause)s, %(correlation_id)s, %(detected_at)s
FROM unnest(%(paths)s::text[]) AS f (path)
ORDER BY f.path COLLATE "C"
ON CONFLICT (mount_id, path) DO NOTHING

-- name: follow_lost
-- The same for what went with a directory.
INSERT INTO filestore.drifts (mount_id, path, reason, cause, correlation_id, detected_at)
SELECT n.mount_id, n.path, 'deleted', %(cause)s, %(correlation_id)s, %(detected_at)s
FROM filestore.nodes n
WHERE n.mount_id = %(mount_id)s AND n.state IN ('active', 'inconsistent')
    AND n.path > %(path)s || '/' AND n.path < %(path)s || '0'
ORDER BY n.path
ON CONFLICT (mount_id, path) DO NOTHING

-- name: poke
-- Wakes the relay; never inside a transaction, since NOTIFY makes commits queue up.
SELECT pg_notify('tristore_outbox', '')

-- name: numbering
-- For readers of the feed: whoever is about to take a number holds this lock (journal.sql).
SELECT pg_advisory_xact_lock_shared(7441, 0)

-- name: journal
-- A batch of drift is one entry, finished as it is made.
INSERT INTO filestore.journal_entries
    (command, state, mount_id, path, correlation_id, nodes_affected, plan, completed_at)
VALUES ('reconcile', 'completed', %(mount_id)s, %(path)s, %(correlation_id)s, %(nodes)s,
    jsonb_build_object('source', %(source)s::text, 'cause', %(cause)s::text), clock_timestamp())
RETURNING id

-- name: number
UPDATE filestore.drifts SET journal_id = %(journal_id)s
WHERE mount_id = %(mount_id)s AND path = ANY(%(paths)s)

-- name: take
-- What is due, for a while: a worker that dies leaves it to the next.
UPDATE filestore.drifts d
SET attempts = d.attempts + 1,
    not_before = clock_timestamp() + make_interval(secs => %(lease)s)
FROM (
    SELECT mount_id, path FROM filestore.drifts
    WHERE not_before <= clock_timestamp()
    ORDER BY not_before LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) AS due
WHERE d.mount_id = due.mount_id AND d.path = due.path
RETURNING d.mount_id, d.path, d.reason, d.cause, d.correlation_id, d.attempts,
    d.journal_id IS NOT NULL, d.detected_at

-- name: settled
-- Unless the path was noted again while it was being settled.
DELETE FROM filestore.drifts d
USING unnest(%(paths)s::text[], %(times)s::timestamptz[]) AS s (path, detected_at)
WHERE d.mount_id = %(mount_id)s AND d.path = s.path AND d.detected_at = s.detected_at

-- name: again
-- Looked at again later, or at once if it was noted again meanwhile.
UPDATE filestore.drifts d
SET not_before = CASE WHEN d.detected_at = s.detected_at
    THEN clock_timestamp() + make_interval(secs => s.seconds) ELSE clock_timestamp() END
FROM unnest(%(paths)s::text[], %(times)s::timestamptz[], %(seconds)s::float8[])
    AS s (path, detected_at, seconds)
WHERE d.mount_id = %(mount_id)s AND d.path = s.path

-- name: now
SELECT clock_timestamp()

-- name: open
-- Whether anything found until then in a directory is still to be settled, but for what has been
-- tried in vain.
SELECT FROM filestore.drifts
WHERE mount_id = %(mount_id)s AND detected_at <= %(until)s AND attempts < %(tries)s
    AND (%(path)s = '' OR path = %(path)s OR (path > %(path)s || '/' AND path < %(path)s || '0'))
LIMIT 1

-- name: renew
-- A long piece of work holds what it took.
UPDATE filestore.drifts SET not_before = clock_timestamp() + make_interval(secs => %(lease)s)
WHERE mount_id = %(mount_id)s AND path = ANY(%(paths)s) AND detected_at = ANY(%(times)s)

-- name: degrade
UPDATE filestore.mounts SET degraded = %(why)s WHERE id = %(mount_id)s

-- name: audited
-- An audit makes up for what was lost before it began, and for nothing later.
UPDATE filestore.mounts
SET last_audit_at = %(began)s,
    degraded = CASE WHEN degraded IS DISTINCT FROM %(degraded)s THEN degraded END
WHERE id = %(mount_id)s

-- name: waiting
-- For readiness and metrics: what is due, since when, and what is not watched whole.
SELECT
    (SELECT count(*) FROM (SELECT FROM filestore.drifts LIMIT 1000000) AS rows_there),
    (
        SELECT coalesce(extract(epoch FROM clock_timestamp() - min(not_before)), 0)::float8
        FROM filestore.drifts
    ),
    (
        SELECT coalesce(extract(epoch FROM clock_timestamp() - min(j.created_at)), 0)::float8
        FROM filestore.jobs j
        WHERE j.state = 'queued' AND NOT EXISTS (
            SELECT FROM filestore.jobs r JOIN filestore.owners o ON o.id = r.owner
            WHERE r.state = 'running' AND o.lease_until > clock_timestamp()
        )
    ),
    (SELECT count(*) FROM filestore.mounts),
    (SELECT count(*) FROM filestore.mounts WHERE degraded IS NOT NULL),
    (SELECT min(degraded) FROM filestore.mounts)

-- name: jobs
-- For metrics: what the jobs that are kept have come to.
SELECT kind, state, count(*), coalesce(sum((progress ->> 'scanned')::bigint), 0)::bigint
FROM filestore.jobs GROUP BY 1, 2
