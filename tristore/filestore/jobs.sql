-- name: create
-- A repeated Idempotency-Key finds the job it made before.
INSERT INTO filestore.jobs
    (kind, mount_id, path, reason, options, principal, token_id, idempotency_key, correlation_id)
VALUES (%(kind)s, %(mount_id)s, %(path)s, %(reason)s, %(options)s, %(principal)s, %(token_id)s,
    %(idempotency_key)s, %(correlation_id)s)
ON CONFLICT (token_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING id

-- name: by_key
SELECT id FROM filestore.jobs
WHERE token_id = %(token_id)s AND idempotency_key = %(idempotency_key)s

-- name: get
SELECT j.id, j.kind, j.mount_id, m.name AS mount, j.path, j.state, j.reason, j.options,
    j.progress, j.error, j.principal, j.correlation_id, j.created_at, j.started_at, j.completed_at
FROM filestore.jobs j JOIN filestore.mounts m ON m.id = j.mount_id
WHERE j.id = %(id)s

-- name: page
-- The newest first.
SELECT j.id, j.kind, j.mount_id, m.name AS mount, j.path, j.state, j.reason, j.options,
    j.progress, j.error, j.principal, j.correlation_id, j.created_at, j.started_at, j.completed_at
FROM filestore.jobs j JOIN filestore.mounts m ON m.id = j.mount_id
WHERE (%(kind)s::text IS NULL OR j.kind = %(kind)s)
    AND (%(mounts)s::text[] IS NULL OR m.name = ANY(%(mounts)s))
    AND (%(before)s::bigint IS NULL OR j.id < %(before)s)
ORDER BY j.id DESC LIMIT %(limit)s

-- name: alone
-- Takers come one after the other, so that two never take jobs of one mount at once: an audit
-- beside an import would call what is about to be imported drift.
SELECT pg_advisory_xact_lock(hashtext('filestore.jobs.take'))

-- name: take
-- The oldest job that waits, of a mount on which no other is at work.
UPDATE filestore.jobs
SET state = 'running', owner = %(owner)s, started_at = coalesce(started_at, clock_timestamp())
WHERE id = (
    SELECT j.id FROM filestore.jobs j
    WHERE j.state = 'queued' AND NOT EXISTS (
        SELECT FROM filestore.jobs other
        WHERE other.state = 'running' AND other.mount_id = j.mount_id
    )
    ORDER BY j.id LIMIT 1
)
RETURNING id

-- name: running
-- Each job at work, with what is known of its worker and whether its lease is over.
SELECT j.id, j.owner, o.id IS NULL OR o.lease_until < clock_timestamp(),
    o.host, o.boot, o.pid, o.started
FROM filestore.jobs j LEFT JOIN filestore.owners o ON o.id = j.owner
WHERE j.state = 'running'

-- name: progress
-- No row: the job was taken over by another worker.
UPDATE filestore.jobs SET progress = %(progress)s
WHERE id = %(id)s AND owner = %(owner)s AND state = 'running'
RETURNING id

-- name: finish
UPDATE filestore.jobs
SET state = %(state)s, progress = %(progress)s, error = %(error)s,
    completed_at = clock_timestamp()
WHERE id = %(id)s AND owner = %(owner)s AND state = 'running'
RETURNING id

-- name: give_back
-- A worker that ends, or is dead, leaves its job to the next one.
UPDATE filestore.jobs SET state = 'queued', owner = NULL
WHERE id = %(id)s AND owner IS NOT DISTINCT FROM %(owner)s AND state = 'running'

-- name: schedule
-- An audit for every mount whose time has come and that does not wait for one already.
INSERT INTO filestore.jobs (kind, mount_id, reason)
SELECT 'reconcile', m.id, 'schedule' FROM filestore.mounts m
WHERE coalesce(m.last_audit_at, m.created_at)
        < clock_timestamp() - make_interval(secs => coalesce(m.audit_seconds, %(default)s))
    AND NOT EXISTS (
        SELECT FROM filestore.jobs j
        WHERE j.mount_id = m.id AND j.kind = 'reconcile' AND j.path = ''
            AND j.state IN ('queued', 'running')
    )
FOR UPDATE OF m SKIP LOCKED

-- name: want_audit
-- One that is still queued will see everything that happened until it starts.
INSERT INTO filestore.jobs (kind, mount_id, reason)
SELECT 'reconcile', %(mount_id)s, %(reason)s
WHERE NOT EXISTS (
    SELECT FROM filestore.jobs j
    WHERE j.mount_id = %(mount_id)s AND j.kind = 'reconcile' AND j.path = '' AND j.state = 'queued'
)

-- name: forget
-- Jobs finished long ago.
DELETE FROM filestore.jobs
WHERE state IN ('completed', 'failed')
    AND completed_at < clock_timestamp() - make_interval(days => %(days)s)
