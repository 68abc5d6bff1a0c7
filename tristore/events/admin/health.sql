-- name: bus
-- (Times are compared with statement_timestamp(): an index is of no use to clock_timestamp().)
-- The outbox, counted no further than a million, and the ends of the log.
SELECT
    (SELECT count(*) FROM (
        SELECT FROM bus.outbox WHERE state = 'pending' LIMIT 1000000
    ) AS waiting) AS pending,
    (SELECT count(*) FROM (
        SELECT FROM bus.outbox WHERE state = 'enqueued' LIMIT 1000000
    ) AS sent) AS enqueued,
    (
        SELECT extract(epoch FROM statement_timestamp() - o.created_at)::float8
        FROM bus.outbox o WHERE o.state = 'pending' ORDER BY o.id LIMIT 1
    ) AS oldest_seconds,
    (
        SELECT count(*) FROM bus.outbox
        WHERE state = 'enqueued' AND lease_until < statement_timestamp() - interval '10 seconds'
    ) AS stuck_leases,
    h.last, h.earliest, h.epoch::text AS epoch
FROM bus.ingress_head h

-- name: backlog
-- Whose events wait or are under way, how often sending those that wait has failed, and since when
-- the oldest of them waits; counted no further than a million of each.
SELECT
    source,
    count(*) FILTER (WHERE state = 'pending') AS pending,
    count(*) FILTER (WHERE state = 'enqueued') AS enqueued,
    coalesce(sum(attempt) FILTER (WHERE state = 'pending'), 0)::bigint AS failed_sends,
    extract(
        epoch FROM statement_timestamp() - min(created_at) FILTER (WHERE state = 'pending')
    )::float8 AS oldest_seconds
FROM (
    (
        SELECT source, state, attempt, created_at
        FROM bus.outbox WHERE state = 'pending' ORDER BY id LIMIT 1000000
    )
    UNION ALL
    (
        SELECT source, state, attempt, created_at
        FROM bus.outbox WHERE state = 'enqueued' LIMIT 1000000
    )
) AS waiting
GROUP BY source
ORDER BY pending DESC, enqueued DESC, source
LIMIT 200

-- name: consumers
-- How far behind each durable reader is.
SELECT c.consumer, c.sequence, greatest(h.last - c.sequence, 0) AS lag, c.last_error, c.updated_at
FROM bus.cursors c CROSS JOIN bus.ingress_head h
ORDER BY c.consumer
LIMIT 1000

-- name: dead_letters
-- Refusals by reason and source: those nobody has settled, and those of the last hour.
SELECT reason, source, sum(open)::bigint AS open, sum(last_hour)::bigint AS last_hour
FROM (
    SELECT reason, source, count(*) AS open, 0 AS last_hour
    FROM bus.dead_letters WHERE state = 'open' GROUP BY reason, source
    UNION ALL
    SELECT reason, source, 0, count(*)
    FROM bus.dead_letters WHERE last_seen_at > statement_timestamp() - interval '1 hour'
    GROUP BY reason, source
) AS counted
GROUP BY reason, source
ORDER BY open DESC, last_hour DESC, reason, source
LIMIT 1000

-- name: since
-- The sequence before the events of the last seconds, so that they are counted by subtraction.
SELECT coalesce((
    SELECT w.ingress_sequence - 1 FROM bus.workflow_events w
    WHERE w.received_at >= statement_timestamp() - make_interval(secs => %(seconds)s)
    ORDER BY w.received_at, w.ingress_sequence LIMIT 1
), h.last), h.last
FROM bus.ingress_head h

-- name: shares
-- Who published them: every event of a short range, evenly spaced ones of a long range.
SELECT w.source, count(*)
FROM generate_series(%(after)s::bigint + 1, %(last)s::bigint, %(step)s::bigint) AS n
JOIN bus.workflow_events w ON w.ingress_sequence = n
GROUP BY w.source
ORDER BY count(*) DESC, w.source
LIMIT 200

-- name: parts
-- The parts of the platform that hold a connection now.
SELECT substring(application_name FROM 10), count(*)
FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'tristore-%%'
GROUP BY 1
ORDER BY 1
