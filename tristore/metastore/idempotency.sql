-- name: find
SELECT request_hash, status, answer::text FROM metastore.idempotency
WHERE token_id = %(token_id)s AND key = %(key)s

-- name: keep
-- In the transaction of the effect: the answer is there if and only if the effect is.
INSERT INTO metastore.idempotency (token_id, key, request_hash, status, answer)
VALUES (%(token_id)s, %(key)s, %(request_hash)s, %(status)s, %(answer)s::json)

-- name: sweep
-- A bounded number of answers nobody will ask for again.
DELETE FROM metastore.idempotency WHERE (token_id, key) IN (
    SELECT token_id, key FROM metastore.idempotency
    WHERE created_at < clock_timestamp() - make_interval(secs => %(seconds)s)
    ORDER BY created_at LIMIT 5000
)
