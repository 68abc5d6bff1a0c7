-- A key is of the token that used it; it is free again when its dataset is deleted.
ALTER TABLE timestore.datasets
    ADD COLUMN token_id text,
    ADD COLUMN idempotency_key text,
    ADD COLUMN request_hash bytea;

CREATE UNIQUE INDEX datasets_key ON timestore.datasets (token_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
