-- name: lock_head
-- Serialises appends. Held until commit, so numbers become visible in their order. It must be a
-- statement of its own: the append after it then sees every earlier append.
SELECT last FROM bus.ingress_head FOR UPDATE

-- name: append
-- Stores the events whose id is new, numbers them without a gap, moves the head and wakes readers,
-- who are handed the rows at once if they are small, unless somebody lets wake-ups pile up. One JSON
-- document is twice as fast as an array per column: the client need not quote every element.
-- With a revision, only while it is that of the schemas and there are no suspects; always a row.
WITH terms AS (
    SELECT %(revision)s::bigint IS NULL
        OR (revision = %(revision)s AND NOT EXISTS (SELECT FROM bus.suspects)) AS hold
    FROM bus.schema_head
), batch AS (
    SELECT * FROM ROWS FROM (
        jsonb_to_recordset(%(events)s::jsonb) AS (
            id text, type text, source text, occurred_at timestamptz, payload jsonb,
            correlation_id text, ttl_ms bigint, metadata jsonb, schema_version integer,
            body_hash text
        )
    ) WITH ORDINALITY AS b (
        id, type, source, occurred_at, payload, correlation_id, ttl_ms, metadata, schema_version,
        body_hash, n
    )
), fresh AS (
    SELECT b.*, row_number() OVER (ORDER BY n) AS place
    FROM batch b
    WHERE (SELECT hold FROM terms)
    AND NOT EXISTS (SELECT FROM bus.workflow_events w WHERE w.id = b.id)
), head AS (
    -- A clock set back must not make the log's times run backwards.
    -- Not a join: taking the one row for many, the planner would read the whole log.
    SELECT h.last, greatest(
        clock_timestamp(),
        (SELECT w.received_at FROM bus.workflow_events w WHERE w.ingress_sequence = h.last)
    ) AS now
    FROM bus.ingress_head h
), stored AS (
    INSERT INTO bus.workflow_events (
        ingress_sequence, received_at, id, type, source, occurred_at, payload, correlation_id,
        ttl_ms, metadata, schema_version, body_hash
    )
    SELECT head.last + place, head.now, id, type, source, occurred_at, payload, correlation_id,
        ttl_ms, metadata, schema_version, decode(body_hash, 'hex')
    FROM fresh, head
    RETURNING *
), told AS (
    SELECT ingress_sequence, json_build_array(
        ingress_sequence, id, type, source, occurred_at, received_at, payload::text,
        correlation_id, ttl_ms, metadata::text, schema_version
    )::text AS row
    FROM stored
    WHERE (SELECT count(*) FROM stored) <= 10
), woken AS (
    SELECT pg_notify('tristore_log', CASE
        WHEN sum(octet_length(row)) < 7500 AND pg_notification_queue_usage() < 0.1 THEN
            concat(
                '{"epoch":"', (SELECT epoch FROM bus.ingress_head), '","rows":[',
                string_agg(row, ',' ORDER BY ingress_sequence), ']}'
            )
        ELSE ''
    END)
    FROM told
), moved AS (
    UPDATE bus.ingress_head SET last = last + (SELECT count(*) FROM stored)
)
SELECT stored.id, stored.ingress_sequence, terms.hold
FROM woken, terms LEFT JOIN stored ON true

-- name: end
-- Where the log ends, and the time of what comes next, after the head is locked.
SELECT h.last, greatest(
    clock_timestamp(),
    (SELECT w.received_at FROM bus.workflow_events w WHERE w.ingress_sequence = h.last)
)
FROM bus.ingress_head h

-- name: known
-- Which of these ids are taken. As one JSON document, for the reason given above.
SELECT id FROM bus.workflow_events
WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text(%(id)s::jsonb)))

-- name: move_head
-- And wakes readers.
UPDATE bus.ingress_head SET last = last + %(count)s RETURNING pg_notify('tristore_log', '')

-- name: hashes
-- What is stored under these ids.
SELECT id, body_hash FROM bus.workflow_events WHERE id = ANY(%(id)s)

-- name: head
-- Where the log ends and begins.
SELECT last, earliest, epoch::text AS epoch FROM bus.ingress_head

-- name: read
-- The events after a position, in order.
SELECT ingress_sequence, id, type, source, occurred_at, received_at, payload, correlation_id,
    ttl_ms, metadata, schema_version
FROM bus.workflow_events
WHERE ingress_sequence > %(after)s
ORDER BY ingress_sequence
LIMIT %(limit)s
