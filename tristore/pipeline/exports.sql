-- name: resume
-- A driver that was killed left these; they are begun again.
UPDATE timestore.exports SET state = 'queued' WHERE state = 'running'

-- name: take
-- The oldest whose dataset holds all that was there when it was asked for.
UPDATE timestore.exports
SET state = 'running', attempts = attempts + 1,
    started_at = coalesce(started_at, clock_timestamp())
WHERE id = (
    SELECT id FROM timestore.exports
    WHERE state = 'queued' AND (
        created_at <= (%(reached)s::jsonb ->> dataset)::timestamptz
        OR dataset IN (SELECT slug FROM timestore.datasets WHERE status = 'deleted')
    )
    ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING id, dataset, format, target, from_time, to_time, attempts, correlation_id

-- name: claim
UPDATE timestore.exports
SET state = 'running', attempts = attempts + 1,
    started_at = coalesce(started_at, clock_timestamp())
WHERE id = %(id)s AND state = 'queued'
RETURNING id, dataset, format, target, from_time, to_time, attempts, correlation_id

-- name: progress
UPDATE timestore.exports SET progress = %(progress)s WHERE id = %(id)s

-- name: complete
-- The event exists if and only if this export is complete.
WITH completed AS (
    UPDATE timestore.exports
    SET state = 'completed', rows = %(rows)s, bytes = %(bytes)s, files = %(files)s,
        table_version = %(version)s, error = NULL, completed_at = clock_timestamp()
    WHERE id = %(id)s AND state = 'running'
    RETURNING 1
)
INSERT INTO bus.outbox (event_id, source, body_hash, envelope)
SELECT %(event_id)s, %(source)s, %(body_hash)s, %(envelope)s FROM completed

-- name: fail
UPDATE timestore.exports
SET state = CASE WHEN %(for_good)s THEN 'failed' ELSE 'queued' END, error = %(error)s
WHERE id = %(id)s AND state = 'running'

-- name: queue
INSERT INTO timestore.exports (dataset, format, target, from_time, to_time, principal)
VALUES (%(dataset)s, %(format)s, %(target)s, %(from_time)s, %(to_time)s, 'operator')
ON CONFLICT DO NOTHING
RETURNING id

-- name: state
SELECT id, dataset, format, target, state, progress, rows, bytes, files, error
FROM timestore.exports WHERE id = %(id)s
