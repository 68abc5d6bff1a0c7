-- name: matching
-- The filters that a list and a replay share; it stands where they say {matching}.
(%(reason)s::text IS NULL OR reason = %(reason)s)
    AND (%(type)s::text IS NULL OR type = %(type)s)
    AND (%(type_prefix)s::text IS NULL OR starts_with(type, %(type_prefix)s))
    AND (%(source)s::text IS NULL OR source = %(source)s)
    AND (%(source_prefix)s::text IS NULL OR starts_with(source, %(source_prefix)s))
    AND (%(since)s::timestamptz IS NULL OR last_seen_at >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR last_seen_at < %(until)s)

-- name: page
-- Letters before a position, newest first, each with the beginning of its bytes.
SELECT id, event_id, type, source, reason, errors, substring(raw FOR %(shown)s) AS raw,
    octet_length(raw) AS raw_bytes, attempts, first_seen_at, last_seen_at, state, settled_at,
    settled_by, replayed_as
FROM bus.dead_letters
WHERE id < %(before)s
    AND (%(state)s::text IS NULL OR state = %(state)s)
    AND {matching}
ORDER BY id DESC
LIMIT %(limit)s

-- name: one
-- A letter with all of its bytes.
SELECT id, event_id, type, source, reason, errors, raw, octet_length(raw) AS raw_bytes, attempts,
    first_seen_at, last_seen_at, state, settled_at, settled_by, replayed_as
FROM bus.dead_letters
WHERE id = %(id)s

-- name: lock
-- The same, held against others who would settle it too.
SELECT id, event_id, type, source, reason, errors, raw, octet_length(raw) AS raw_bytes, attempts,
    first_seen_at, last_seen_at, state, settled_at, settled_by, replayed_as
FROM bus.dead_letters
WHERE id = %(id)s
FOR UPDATE

-- name: lock_open
-- Open letters after a position, oldest first, for a replay by filter. What is too large to be an
-- event comes without its bytes; what another operator is settling just now is left to them.
SELECT id, event_id, type, source, reason, errors,
    CASE WHEN octet_length(raw) <= %(largest)s THEN raw ELSE '' END AS raw,
    octet_length(raw) AS raw_bytes, attempts, first_seen_at, last_seen_at, state, settled_at,
    settled_by, replayed_as
FROM bus.dead_letters
WHERE id > %(after)s AND state = 'open'
    AND {matching}
ORDER BY id
LIMIT %(limit)s
FOR UPDATE SKIP LOCKED

-- name: count_open
-- What a replay by filter would take, and where it would begin.
SELECT count(*), coalesce((array_agg(id ORDER BY id))[:20], '{}')
FROM bus.dead_letters
WHERE id > %(after)s AND state = 'open'
    AND {matching}

-- name: settle
-- The end of a letter; the row stays, so that the ledger still accounts for its event.
UPDATE bus.dead_letters
SET state = %(state)s, settled_at = clock_timestamp(), settled_by = %(by)s,
    replayed_as = %(replayed_as)s
WHERE id = %(id)s
