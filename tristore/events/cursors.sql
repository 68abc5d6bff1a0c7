-- name: find
-- Where a reader stands.
SELECT sequence, epoch::text AS epoch, types FROM bus.cursors WHERE consumer = %(consumer)s

-- name: start
-- Makes a reader's cursor, or notes which types it asks for now; its position stays.
INSERT INTO bus.cursors AS c (consumer, sequence, epoch, types)
SELECT %(consumer)s, CASE WHEN %(now)s THEN h.last ELSE h.earliest - 1 END, h.epoch, %(types)s
FROM bus.ingress_head h
ON CONFLICT (consumer) DO UPDATE SET types = excluded.types
RETURNING sequence, epoch::text AS epoch, types

-- name: page
-- The head of the log, and beside it the wanted events after a position, of one snapshot: what
-- retention takes away cannot go unnoticed between the two. At most `window` numbers are looked
-- at, so that a rare type costs many short queries and not a long one; at most `bytes` of payload
-- are fetched, unless the first event alone is larger.
SELECT h.last, h.earliest, h.epoch::text AS epoch, e.*
FROM bus.ingress_head h
LEFT JOIN LATERAL (
    SELECT ingress_sequence, id, type, source, occurred_at, received_at, payload, correlation_id,
        ttl_ms, metadata, schema_version
    FROM (
        SELECT *, sum(octet_length(payload::text)) OVER (ORDER BY ingress_sequence) AS total,
            row_number() OVER (ORDER BY ingress_sequence) AS place
        FROM (
            SELECT * FROM bus.workflow_events
            WHERE ingress_sequence > %(after)s
                AND ingress_sequence <= %(after)s::bigint + %(window)s::bigint
                AND type LIKE ANY (%(types)s)
            ORDER BY ingress_sequence
            LIMIT %(limit)s
        ) AS wanted
    ) AS measured
    WHERE total <= %(bytes)s OR place = 1
) AS e ON true
ORDER BY e.ingress_sequence

-- name: advance
-- Moves a cursor forward, never back, never past the log, never in another history of it.
UPDATE bus.cursors c
SET sequence = greatest(c.sequence, %(sequence)s), updated_at = clock_timestamp()
FROM bus.ingress_head h
WHERE c.consumer = %(consumer)s AND c.epoch = h.epoch AND %(sequence)s <= h.last
RETURNING c.sequence

-- name: lock
-- Keeps other readers of the same name from handling the same event at the same time.
SELECT sequence FROM bus.cursors WHERE consumer = %(consumer)s FOR UPDATE

-- name: note
-- Why a reader does not get on, for operators; nothing once it does.
UPDATE bus.cursors SET last_error = %(error)s
WHERE consumer = %(consumer)s AND last_error IS DISTINCT FROM %(error)s

-- name: forget
DELETE FROM bus.cursors WHERE consumer = %(consumer)s
