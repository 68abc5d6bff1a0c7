-- name: weather
-- One row a time step, four stations in turn; `_partition` is the day.
SELECT make_timestamptz({begin} + range * {step}) AS at,
       'station ' || range % 4 AS station,
       20 + 10 * sin(range / 5000.0) AS celsius,
       range % 100 AS hits,
       strftime(make_timestamptz({begin} + range * {step}), '%Y-%m-%d') AS _partition
FROM range({rows})

-- name: downsampled
-- What the question to the dataset asks, over one file.
SELECT time_bucket(INTERVAL '1 hour', "at") AS bucket, avg(celsius), max(celsius), count(*)
FROM weather GROUP BY ALL ORDER BY bucket

-- name: publish
-- Files written, numbered under the locked head as every writer numbers.
WITH head AS (UPDATE bus.ingress_head SET last = last + %(count)s RETURNING last)
INSERT INTO bus.workflow_events
    (id, type, source, occurred_at, ingress_sequence, payload, schema_version, body_hash)
SELECT 'bench-' || n, 'filestore.node.created', 'bench', clock_timestamp(), n,
    jsonb_build_object('nodeId', n::text, 'mount', 'm', 'path', 'in/' || n, 'kind', 'file',
        'version', 1, 'sizeBytes', 100, 'sizeDelta', 100, 'state', 'active', 'journalId', n,
        'command', 'put'), 1, ''
FROM head, generate_series(head.last - %(count)s + 1, head.last) AS n
RETURNING (SELECT last FROM head)
