-- name: secondary_indexes
-- What is put aside while rows are loaded and made again afterwards.
SELECT indexname, indexdef FROM pg_indexes
WHERE schemaname = 'bus' AND tablename = 'workflow_events' AND indexdef NOT LIKE '%%UNIQUE%%'

-- name: load
-- Events of 20 types from 10 sources, one a millisecond. A type meets only every other source, so
-- half of the pairs never occur although both of their sides are frequent.
INSERT INTO bus.workflow_events (id, type, source, occurred_at, received_at, ingress_sequence,
    payload, correlation_id, body_hash)
SELECT 'bench-' || n, 'bench.kind' || n %% 20 || '.made',
    'source' || ((n / 20 %% 5) * 2 + n %% 2), %(begin)s::timestamptz + n * interval '1 ms',
    %(begin)s::timestamptz + n * interval '1 ms', n,
    jsonb_build_object('n', n, 'text', repeat('x', 150)), 'run-' || n / 100, '\x00'
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n

-- name: bare
-- The same page with nothing around it.
SELECT ingress_sequence, id, type, source, occurred_at, received_at, payload, correlation_id,
    ttl_ms, metadata, schema_version
FROM bus.workflow_events
WHERE type = %(type)s AND source = %(source)s
ORDER BY ingress_sequence DESC
LIMIT 100
