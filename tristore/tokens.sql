-- name: add
-- A new token; only its hash is kept.
INSERT INTO bus.tokens (name, hash, scopes, namespaces, mounts, datasets, expires_at)
VALUES (%(name)s, %(hash)s, %(scopes)s, %(namespaces)s, %(mounts)s, %(datasets)s, %(expires_at)s)
RETURNING id::text

-- name: find
-- The rights behind a token that is neither revoked nor over.
SELECT id::text, name, scopes, namespaces, mounts, datasets
FROM bus.tokens
WHERE hash = %(hash)s AND revoked_at IS NULL
    AND (expires_at IS NULL OR expires_at > clock_timestamp())

-- name: alive
-- Which of these tokens still hold.
SELECT id::text FROM bus.tokens
WHERE id = ANY(%(ids)s::uuid[]) AND revoked_at IS NULL
    AND (expires_at IS NULL OR expires_at > clock_timestamp())

-- name: all
-- Every token there ever was, newest first; never the token itself.
SELECT id::text, name, scopes, namespaces, mounts, datasets, created_at, expires_at, revoked_at
FROM bus.tokens
ORDER BY created_at DESC, id
LIMIT 10000

-- name: named
-- The tokens in use that go by an id or a name.
SELECT id::text FROM bus.tokens
WHERE (id::text = %(named)s OR name = %(named)s) AND revoked_at IS NULL

-- name: revoke
-- Ends a token; its row stays, so that what was done with it keeps a name.
UPDATE bus.tokens SET revoked_at = clock_timestamp() WHERE id = %(id)s::uuid AND revoked_at IS NULL
