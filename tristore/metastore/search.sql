-- name: namespaces
-- The namespaces among some names (null: all) that a token may see (null: all), and what they
-- declare for searches.
SELECT name, indexes, text_fields FROM metastore.namespaces
WHERE (%(names)s::text[] IS NULL OR name = ANY (%(names)s))
    AND (%(allowed)s::text[] IS NULL OR name = ANY (%(allowed)s))
ORDER BY name

-- name: limits
-- A page of the table costs as much wherever it lies: records are in memory, or on a solid disk.
SELECT set_config('random_page_cost', '1.1', true)

-- name: filter_first
-- Everything that passes, put in order afterwards: what is quick where little passes. Materialized,
-- so that the planner cannot walk the order instead in the hope of a hit.
WITH found AS MATERIALIZED (
    SELECT id, {keys} FROM metastore.records WHERE {where}
), page AS (
    SELECT * FROM found ORDER BY {order} LIMIT {limit}
)
SELECT r.namespace, r.key, r.metadata, r.tags, r.owner, r.version, r.created_at, r.updated_at,
    r.created_by, r.updated_by, r.deleted_at, page.*
FROM page JOIN metastore.records r USING (id)
ORDER BY {order}

-- name: walk
-- The next records in order, of which those that pass are a page if they are enough: what is quick
-- where much passes. It costs no more than it examines, however little passes.
WITH walked AS MATERIALIZED (
    SELECT namespace, key, metadata, tags, owner, version, created_at, updated_at, created_by,
        updated_by, deleted_at, id, {keys}
    FROM metastore.records WHERE {base} ORDER BY {walk_order} LIMIT {scan}
)
SELECT page.*, seen.examined
FROM (SELECT count(*) AS examined FROM walked) AS seen
LEFT JOIN LATERAL (
    SELECT * FROM walked WHERE {where} ORDER BY {order} LIMIT {limit}
) AS page ON true
ORDER BY {order}

-- name: count
SELECT count(*) FROM metastore.records WHERE {where}
