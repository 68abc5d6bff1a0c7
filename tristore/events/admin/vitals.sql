-- name: bounded
-- Whatever state the tables are in, looking after them must not hurt them.
SELECT set_config('statement_timeout', '1500ms', true)

-- name: pulse
-- What moves when the workers do: the head of the log, the newest dead letter, the oldest event
-- that waits and the oldest that is under way.
SELECT h.last,
    coalesce((SELECT max(id) FROM bus.dead_letters), 0),
    p.id, coalesce(extract(epoch FROM clock_timestamp() - p.created_at), 0)::float8,
    e.id, coalesce(extract(epoch FROM clock_timestamp() - e.lease_until), 0)::float8
FROM bus.ingress_head h
LEFT JOIN LATERAL (
    SELECT id, created_at FROM bus.outbox WHERE state = 'pending' ORDER BY id LIMIT 1
) AS p ON true
LEFT JOIN LATERAL (
    SELECT id, lease_until FROM bus.outbox WHERE state = 'enqueued' ORDER BY lease_until LIMIT 1
) AS e ON true

-- name: backlog
-- Events on their way, counted no further than makes a difference; and how often sending those
-- that wait has failed.
SELECT state, source, count(*), coalesce(sum(attempt) FILTER (WHERE state = 'pending'), 0)::bigint
FROM (
    (SELECT state, source, attempt FROM bus.outbox WHERE state = 'pending' LIMIT 1000000)
    UNION ALL
    (SELECT state, source, attempt FROM bus.outbox WHERE state = 'enqueued' LIMIT 1000000)
) AS waiting
GROUP BY state, source

-- name: open_dead_letters
SELECT reason, coalesce(source, ''), count(*) FROM (
    SELECT reason, source FROM bus.dead_letters WHERE state = 'open' ORDER BY id DESC LIMIT 100000
) AS newest
GROUP BY 1, 2

-- name: consumers
SELECT consumer, sequence FROM bus.cursors ORDER BY consumer

-- name: stored
-- How many events each source has stored in a range of the log.
SELECT source, count(*) FROM bus.workflow_events
WHERE ingress_sequence > %(after)s AND ingress_sequence <= %(upto)s
GROUP BY source
