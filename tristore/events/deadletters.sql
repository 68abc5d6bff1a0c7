-- name: add
-- Keeps refused events; the same bytes refused again for the same reason count up while the
-- letter is open. Once it is settled, they are a new letter.
INSERT INTO bus.dead_letters (event_id, type, source, reason, errors, raw, raw_hash)
SELECT * FROM unnest(
    %(event_id)s::text[], %(type)s::text[], %(source)s::text[], %(reason)s::text[],
    %(errors)s::jsonb[], %(raw)s::bytea[], %(raw_hash)s::bytea[]
)
ON CONFLICT (raw_hash, reason) WHERE state = 'open' DO UPDATE
SET attempts = bus.dead_letters.attempts + 1, last_seen_at = clock_timestamp()
