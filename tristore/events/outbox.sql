-- name: add
-- One event on its way to the log, in the caller's transaction.
INSERT INTO bus.outbox (event_id, source, body_hash, envelope)
VALUES (%(event_id)s, %(source)s, %(body_hash)s, %(envelope)s)

-- name: add_many
-- The same for many, in their order; as one document, because thousands of parameters take longer.
INSERT INTO bus.outbox (event_id, source, body_hash, envelope)
SELECT event_id, source, decode(body_hash, 'hex'), envelope
FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS b (event_id text, source text, body_hash text, envelope text)

-- name: claim
-- Takes the oldest waiting rows for one relay; another relay skips them. Nothing is taken while
-- `most` are under way: a queue that stands still must not be sent the same rows again and again.
UPDATE bus.outbox o
SET state = 'enqueued', token = %(token)s, attempt = attempt + 1,
    lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
FROM (
    SELECT id, day FROM bus.outbox
    WHERE state = 'pending' AND %(most)s > (
        SELECT count(*) FROM (
            SELECT FROM bus.outbox WHERE state = 'enqueued' LIMIT %(most)s
        ) AS under_way
    )
    ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) AS oldest
WHERE o.id = oldest.id AND o.day = oldest.day
RETURNING o.id, o.envelope

-- name: release
-- Gives a claim back at once when the queue did not take it.
UPDATE bus.outbox SET state = 'pending', token = NULL, lease_until = NULL
WHERE token = %(token)s AND state = 'enqueued'

-- name: expire
-- Rows the queue has forgotten: their lease ran out before they were stored.
UPDATE bus.outbox SET state = 'pending', token = NULL, lease_until = NULL
WHERE state = 'enqueued' AND lease_until < statement_timestamp()

-- name: finish
-- Marks rows done in the transaction that stored the events or their dead letters. A row is
-- found by id and body, so a stranger's event with the same id cannot finish it; an event too
-- broken to hash is found by the claim it came with.
UPDATE bus.outbox o
SET state = 'done', done_at = clock_timestamp(), token = NULL, lease_until = NULL
FROM jsonb_to_recordset(%(settled)s::jsonb) AS b (event_id text, body_hash text, token text)
WHERE o.event_id = b.event_id AND o.state <> 'done' AND (
    o.body_hash = decode(b.body_hash, 'hex') OR (b.body_hash IS NULL AND o.token = b.token)
)

-- name: offer
-- Adds the events whose id is neither in the log nor in the outbox yet.
INSERT INTO bus.outbox (event_id, source, body_hash, envelope)
SELECT event_id, source, body_hash, envelope
FROM unnest(%(event_id)s::text[], %(source)s::text[], %(body_hash)s::bytea[], %(envelope)s::text[])
    WITH ORDINALITY AS b (event_id, source, body_hash, envelope, n)
WHERE NOT EXISTS (SELECT FROM bus.workflow_events w WHERE w.id = b.event_id)
    AND NOT EXISTS (SELECT FROM bus.outbox o WHERE o.event_id = b.event_id)
ORDER BY n
ON CONFLICT (event_id, day) DO NOTHING
RETURNING event_id

-- name: known
-- What stands under these ids already; the log's word comes last and counts.
SELECT event_id, body_hash, NULL::bigint FROM bus.outbox WHERE event_id = ANY(%(event_id)s)
UNION ALL
SELECT id, body_hash, ingress_sequence FROM bus.workflow_events WHERE id = ANY(%(event_id)s)
