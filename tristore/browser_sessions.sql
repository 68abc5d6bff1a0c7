-- name: open
-- A session for a token; those that are over are swept along the way.
WITH swept AS (DELETE FROM bus.sessions WHERE expires_at < clock_timestamp())
INSERT INTO bus.sessions (hash, token_id, expires_at)
VALUES (%(hash)s, %(token_id)s, clock_timestamp() + make_interval(secs => %(seconds)s))
RETURNING expires_at

-- name: find
-- The rights behind a session: its token's, as long as that holds.
SELECT t.id::text, t.name, t.scopes, t.namespaces, t.mounts, t.datasets
FROM bus.sessions s JOIN bus.tokens t ON t.id = s.token_id
WHERE s.hash = %(hash)s AND s.expires_at > clock_timestamp()
    AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())

-- name: end
DELETE FROM bus.sessions WHERE hash = %(hash)s

-- name: add_ticket
-- A ticket for a token; those nobody used in time are swept along the way.
WITH swept AS (DELETE FROM bus.tickets WHERE expires_at < clock_timestamp())
INSERT INTO bus.tickets (hash, token_id, expires_at)
VALUES (%(hash)s, %(token_id)s, clock_timestamp() + make_interval(secs => %(seconds)s))
RETURNING expires_at

-- name: redeem
-- The rights behind a ticket, which is gone with the asking: of two at once, one gets them.
WITH used AS (DELETE FROM bus.tickets WHERE hash = %(hash)s RETURNING token_id, expires_at)
SELECT t.id::text, t.name, t.scopes, t.namespaces, t.mounts, t.datasets
FROM used JOIN bus.tokens t ON t.id = used.token_id
WHERE used.expires_at > clock_timestamp()
    AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
