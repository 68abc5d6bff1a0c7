-- name: resume
UPDATE timestore.pipeline_requests SET state = 'queued' WHERE state = 'running'

-- name: take
UPDATE timestore.pipeline_requests
SET state = 'running', attempts = attempts + 1,
    started_at = coalesce(started_at, clock_timestamp())
WHERE id = (
    SELECT id FROM timestore.pipeline_requests WHERE state = 'queued'
    ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING id, action, arguments, attempts

-- name: finish
UPDATE timestore.pipeline_requests
SET state = %(state)s, result = %(result)s, error = %(error)s, finished_at = clock_timestamp()
WHERE id = %(id)s AND state = 'running'

-- name: progress
UPDATE timestore.pipeline_requests SET progress = %(progress)s WHERE id = %(id)s

-- name: ask
INSERT INTO timestore.pipeline_requests (action, arguments) VALUES (%(action)s, %(arguments)s)
RETURNING id

-- name: state
SELECT state, progress, result, error FROM timestore.pipeline_requests WHERE id = %(id)s

-- name: withdraw
DELETE FROM timestore.pipeline_requests WHERE id = %(id)s AND state = 'queued'

-- name: sweep
DELETE FROM timestore.pipeline_requests
WHERE state IN ('completed', 'failed') AND finished_at < clock_timestamp() - interval '7 days'
