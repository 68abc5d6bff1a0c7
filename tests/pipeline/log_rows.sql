-- name: lock_head
SELECT last FROM bus.ingress_head FOR UPDATE

-- name: append
-- Odd microseconds, two days, nulls in every optional column of every other row.
INSERT INTO bus.workflow_events
    (id, type, source, occurred_at, ingress_sequence, payload, correlation_id, ttl_ms, metadata,
     schema_version, body_hash)
SELECT 'event-' || n, 'test.row.written', 'tests',
       timestamptz '2026-03-01T23:59:00.000001Z' + n * interval '0.100007 seconds',
       n, jsonb_build_object('n', n, 'text', 'zażółć'),
       CASE WHEN n %% 2 = 0 THEN 'run-' || n END, CASE WHEN n %% 2 = 0 THEN n END,
       CASE WHEN n %% 2 = 0 THEN jsonb_build_object('n', n) END, CASE WHEN n %% 2 = 0 THEN 1 END,
       sha256(n::text::bytea)
FROM generate_series(%(last)s::bigint + 1, %(last)s::bigint + %(count)s) AS n

-- name: move_head
UPDATE bus.ingress_head SET last = last + %(count)s
