-- name: take_turn
-- One process at a time keeps house; the others try again later.
SELECT pg_try_advisory_lock(7402110912)

-- name: end_turn
SELECT pg_advisory_unlock(7402110912)

-- name: partitions
-- The daily partitions of the outbox, oldest first.
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'bus.outbox'::regclass AND c.relname ~ '^outbox_\d{8}$'
ORDER BY c.relname

-- name: clear_default
-- Settled rows that arrived while no partition for their day existed.
DELETE FROM bus.outbox_default WHERE state = 'done' AND day < %(day)s

-- name: forget
-- Rows that only matter for a while.
WITH suspects AS (DELETE FROM bus.suspects WHERE last_seen_at < now() - interval '1 day'),
     sessions AS (DELETE FROM bus.sessions WHERE expires_at < now())
DELETE FROM bus.tickets WHERE expires_at < now()

-- name: oldest_to_keep
-- The log may be cut before this number: old enough, and read by every durable consumer.
SELECT least(
    coalesce(
        (SELECT min(ingress_sequence) FROM bus.workflow_events
         WHERE received_at >= now() - make_interval(secs => %(seconds)s)),
        (SELECT last + 1 FROM bus.ingress_head)
    ),
    (SELECT min(sequence) + 1 FROM bus.cursors)
)

-- name: cut_log
-- A bounded piece; the head row is locked last and only for the moment of the commit.
WITH gone AS (
    DELETE FROM bus.workflow_events WHERE ingress_sequence IN (
        SELECT ingress_sequence FROM bus.workflow_events WHERE ingress_sequence < %(before)s
        ORDER BY ingress_sequence LIMIT %(limit)s
    )
    RETURNING ingress_sequence
)
SELECT count(*), max(ingress_sequence) + 1 FROM gone

-- name: move_earliest
UPDATE bus.ingress_head SET earliest = greatest(earliest, %(earliest)s)
