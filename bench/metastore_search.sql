-- name: namespace
INSERT INTO metastore.namespaces (name, created_by, updated_by) VALUES ('bench', 'bench', 'bench')

-- name: declare
UPDATE metastore.namespaces SET indexes = '["metadata.size"]' WHERE name = 'bench'

-- name: load
-- Records of 10 kinds, with one of 10 tags and one of 1,000 sizes, each apart from the others: one
-- kind, one tag and a tenth of the sizes are together one record in a thousand, spread evenly.
INSERT INTO metastore.records (namespace, key, metadata, tags, owner, created_at, updated_at,
    created_by, updated_by)
SELECT 'bench', 'record-' || n,
    jsonb_build_object('kind', 'kind' || n %% 10, 'size', n / 100 %% 1000, 'station',
        'station' || n %% 7919, 'quality', jsonb_build_object('score', n %% 101, 'by', 'auto'),
        'note', repeat('x', 80)),
    ARRAY['common', 'tag' || n / 10 %% 10], CASE WHEN n %% 3 = 0 THEN 'team' || n %% 40 END,
    %(begin)s::timestamptz + n * interval '1 ms',
    %(begin)s::timestamptz + (n * 7919 %% 1000003) * interval '1 s', 'bench', 'bench'
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n

-- name: compound
-- The same page with nothing around it, in the form that is quick here.
WITH found AS MATERIALIZED (
    SELECT id, key FROM metastore.records
    WHERE namespace = 'bench' AND deleted_at IS NULL
        AND metadata @> jsonb_build_object('kind', %(kind)s::text)
        AND tags @> ARRAY[%(tag)s::text]
        AND CASE WHEN jsonb_typeof(metadata #> '{size}') = 'number'
            THEN (metadata #> '{size}')::numeric END BETWEEN %(low)s::numeric AND %(high)s::numeric
), page AS (
    SELECT id, key FROM found ORDER BY key LIMIT 100
)
SELECT r.* FROM page JOIN metastore.records r USING (id) ORDER BY page.key

-- name: by_time
SELECT * FROM metastore.records WHERE namespace = 'bench' AND deleted_at IS NULL
ORDER BY updated_at DESC, id DESC LIMIT 100

-- name: by_size
SELECT * FROM metastore.records
WHERE namespace = 'bench' AND deleted_at IS NULL
    AND CASE WHEN jsonb_typeof(metadata #> '{size}') = 'number'
        THEN (metadata #> '{size}')::numeric END IS NOT NULL
ORDER BY CASE WHEN jsonb_typeof(metadata #> '{size}') = 'number'
    THEN (metadata #> '{size}')::numeric END, id
LIMIT 100
