-- name: append
-- What a busy filestore tells: files made, changed and deleted over a month, in folders of three
-- levels on four mounts.
INSERT INTO bus.workflow_events
    (id, type, source, occurred_at, ingress_sequence, payload, correlation_id, schema_version,
     body_hash)
SELECT gen_random_uuid()::text,
    (array['filestore.node.created', 'filestore.node.updated', 'filestore.node.deleted'])
        [1 + n %% 3],
    'filestore.api',
    timestamptz '2026-03-01T00:00:00Z' + (n %% 2592000) * interval '1 second',
    n,
    jsonb_build_object(
        'nodeId', (n / 3)::text, 'mount', 'mount-' || n %% 4,
        'path', 'team-' || n %% 20 || '/set-' || n %% 300 || '/part-' || n %% 7
            || '/file-' || n / 3 || '.parquet',
        'kind', 'file', 'version', 1 + n %% 3, 'sizeBytes', 1000 + n %% 100000,
        'sizeDelta', (1000 + n %% 100000) * (array[1, 0, -1])[1 + n %% 3],
        'state', (array['active', 'active', 'deleted'])[1 + n %% 3], 'journalId', n,
        'command', (array['put', 'put', 'delete'])[1 + n %% 3], 'principal', 'bench'),
    'run-' || n / 100, 1, decode(md5(n::text), 'hex')
FROM generate_series(%(after)s::bigint + 1, %(through)s::bigint) AS n

-- name: move_head
UPDATE bus.ingress_head SET last = %(through)s
