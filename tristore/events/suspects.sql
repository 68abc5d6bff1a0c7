-- name: deadly
-- Which of these events have been condemned: accused once more after the last death that counts.
SELECT raw_hash FROM bus.suspects WHERE raw_hash = ANY(%(raw_hash)s) AND deaths > %(deaths)s

-- name: watch
-- The number of the last change of a schema, and whether there are suspects. Normally nothing is
-- new and there are none, and nothing more is asked.
SELECT revision, EXISTS (SELECT FROM bus.suspects) FROM bus.schema_head

-- name: accuse
-- Committed before an event is processed alone: if the worker dies now, it was this one.
INSERT INTO bus.suspects (raw_hash) VALUES (%(raw_hash)s)
ON CONFLICT (raw_hash) DO UPDATE
SET deaths = bus.suspects.deaths + 1, last_seen_at = clock_timestamp()
RETURNING deaths - 1

-- name: acquit
-- The worker lives.
DELETE FROM bus.suspects WHERE raw_hash = %(raw_hash)s
