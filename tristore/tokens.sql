-- name: add
-- A new token; only its hash is kept.
INSERT INTO bus.tokens (name, hash, scopes, namespaces, mounts, datasets, expires_at)
VALUES (%(name)s, %(hash)s, %(scopes)s, %(namespaces)s, %(mounts)s, %(datasets)s, %(expires_at)s)

-- name: find
-- The rights behind a token that is neither revoked nor over.
SELECT id::text, name, scopes, namespaces, mounts, datasets
FROM bus.tokens
WHERE hash = %(hash)s AND revoked_at IS NULL
    AND (expires_at IS NULL OR expires_at > clock_timestamp())
