-- A key is of the token that used it.
ALTER TABLE filestore.mounts
    ADD COLUMN token_id text,
    ADD COLUMN idempotency_key text;

CREATE UNIQUE INDEX mounts_key ON filestore.mounts (token_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
