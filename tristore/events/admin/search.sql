-- name: keys_by_type_and_source
-- The next sequence numbers of some (type, source) pairs, merged. Comparing whole index rows, and
-- ordering by them, leaves the planner one index only: it would otherwise walk the whole log
-- backwards when it believes that matches are frequent, which is slowest when there are none.
SELECT k.ingress_sequence
FROM unnest(%(types)s::text[], %(sources)s::text[]) AS p (type, source)
CROSS JOIN LATERAL (
    SELECT w.ingress_sequence
    FROM bus.workflow_events w
    WHERE (w.type, w.source, w.ingress_sequence) >= (p.type, p.source, %(low)s::bigint)
        AND (w.type, w.source, w.ingress_sequence) <= (p.type, p.source, %(high)s::bigint)
    ORDER BY w.type DESC, w.source DESC, w.ingress_sequence DESC
    LIMIT %(scan)s
) AS k
ORDER BY k.ingress_sequence DESC
LIMIT %(scan)s

-- name: keys_by_type
-- The same for some types.
SELECT k.ingress_sequence
FROM unnest(%(types)s::text[]) AS p (type)
CROSS JOIN LATERAL (
    SELECT w.ingress_sequence
    FROM bus.workflow_events w
    WHERE (w.type, w.ingress_sequence) >= (p.type, %(low)s::bigint)
        AND (w.type, w.ingress_sequence) <= (p.type, %(high)s::bigint)
    ORDER BY w.type DESC, w.ingress_sequence DESC
    LIMIT %(scan)s
) AS k
ORDER BY k.ingress_sequence DESC
LIMIT %(scan)s

-- name: keys_by_source
-- The same for some sources.
SELECT k.ingress_sequence
FROM unnest(%(sources)s::text[]) AS p (source)
CROSS JOIN LATERAL (
    SELECT w.ingress_sequence
    FROM bus.workflow_events w
    WHERE (w.source, w.ingress_sequence) >= (p.source, %(low)s::bigint)
        AND (w.source, w.ingress_sequence) <= (p.source, %(high)s::bigint)
    ORDER BY w.source DESC, w.ingress_sequence DESC
    LIMIT %(scan)s
) AS k
ORDER BY k.ingress_sequence DESC
LIMIT %(scan)s

-- name: keys_by_correlation
-- The same for one correlation id.
SELECT w.ingress_sequence
FROM bus.workflow_events w
WHERE w.correlation_id IS NOT NULL
    AND (w.correlation_id, w.ingress_sequence) >= (%(correlation_id)s::text, %(low)s::bigint)
    AND (w.correlation_id, w.ingress_sequence) <= (%(correlation_id)s::text, %(high)s::bigint)
ORDER BY w.correlation_id DESC, w.ingress_sequence DESC
LIMIT %(scan)s

-- name: keys
-- The next sequence numbers of all events.
SELECT w.ingress_sequence
FROM bus.workflow_events w
WHERE w.ingress_sequence BETWEEN %(low)s AND %(high)s
ORDER BY w.ingress_sequence DESC
LIMIT %(scan)s

-- name: keys_off_seconds
-- The next ones of those that were received seconds after or before they happened; the condition
-- is that of their index.
SELECT w.ingress_sequence
FROM bus.workflow_events w
WHERE w.ingress_sequence BETWEEN %(low)s AND %(high)s
    AND (
        w.received_at - w.occurred_at > interval '5 seconds'
        OR w.received_at - w.occurred_at < interval '-5 seconds'
    )
ORDER BY w.ingress_sequence DESC
LIMIT %(scan)s

-- name: keys_off_minutes
-- The same for minutes.
SELECT w.ingress_sequence
FROM bus.workflow_events w
WHERE w.ingress_sequence BETWEEN %(low)s AND %(high)s
    AND (
        w.received_at - w.occurred_at > interval '10 minutes'
        OR w.received_at - w.occurred_at < interval '-10 minutes'
    )
ORDER BY w.ingress_sequence DESC
LIMIT %(scan)s

-- name: keys_of_times
-- The sequence numbers of a time range, as long as it is a short one.
SELECT w.ingress_sequence
FROM bus.workflow_events w
WHERE (%(since)s::timestamptz IS NULL OR w.occurred_at >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR w.occurred_at < %(until)s)
ORDER BY w.occurred_at
LIMIT %(most)s

-- name: received_range
-- The sequence numbers between which every event of a time range lies that was received within
-- some time of it.
SELECT (
    SELECT w.ingress_sequence FROM bus.workflow_events w
    WHERE w.received_at >= %(since)s::timestamptz - %(off)s::interval
    ORDER BY w.received_at, w.ingress_sequence LIMIT 1
), (
    SELECT w.ingress_sequence FROM bus.workflow_events w
    WHERE w.received_at <= %(until)s::timestamptz + %(off)s::interval
    ORDER BY w.received_at DESC, w.ingress_sequence DESC LIMIT 1
)

-- name: types_below
-- The types with a prefix: one index probe for each, however many events there are.
WITH RECURSIVE found AS (
    (
        SELECT w.type FROM bus.workflow_events w
        WHERE w.type >= %(low)s AND w.type < %(high)s
        ORDER BY w.type LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT w.type FROM bus.workflow_events w
        WHERE w.type > f.type AND w.type < %(high)s
        ORDER BY w.type LIMIT 1
    )
    FROM found f WHERE f.type IS NOT NULL
)
SELECT type FROM found WHERE type IS NOT NULL LIMIT %(most)s

-- name: sources_below
-- The sources with a prefix, in the same way.
WITH RECURSIVE found AS (
    (
        SELECT w.source FROM bus.workflow_events w
        WHERE w.source >= %(low)s AND w.source < %(high)s
        ORDER BY w.source LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT w.source FROM bus.workflow_events w
        WHERE w.source > f.source AND w.source < %(high)s
        ORDER BY w.source LIMIT 1
    )
    FROM found f WHERE f.source IS NOT NULL
)
SELECT source FROM found WHERE source IS NOT NULL LIMIT %(most)s

-- name: fetch
-- Those of some events that pass every filter. OFFSET 0 keeps the filters away from the choice of
-- index: the events are found by their numbers, whatever the statistics say.
SELECT ingress_sequence, id, type, source, occurred_at, received_at, payload, correlation_id,
    ttl_ms, metadata, schema_version
FROM (
    SELECT * FROM bus.workflow_events w WHERE w.ingress_sequence = ANY(%(keys)s::bigint[]) OFFSET 0
) AS w
CROSS JOIN LATERAL (SELECT w.payload #> %(path)s::text[] AS found) AS at
WHERE (%(type)s::text IS NULL OR w.type = %(type)s)
    AND (%(type_prefix)s::text IS NULL OR starts_with(w.type, %(type_prefix)s))
    AND (%(source)s::text IS NULL OR w.source = %(source)s)
    AND (%(source_prefix)s::text IS NULL OR starts_with(w.source, %(source_prefix)s))
    AND (%(correlation_id)s::text IS NULL OR w.correlation_id = %(correlation_id)s)
    AND (%(since)s::timestamptz IS NULL OR w.occurred_at >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR w.occurred_at < %(until)s)
    AND (%(path)s::text[] IS NULL OR CASE %(operator)s::text
        WHEN 'exists' THEN at.found IS NOT NULL
        WHEN '==' THEN at.found = %(value)s::jsonb
        WHEN '!=' THEN at.found <> %(value)s::jsonb
        ELSE jsonb_typeof(at.found) = jsonb_typeof(%(value)s::jsonb) AND CASE %(operator)s::text
            WHEN '<' THEN at.found < %(value)s::jsonb
            WHEN '<=' THEN at.found <= %(value)s::jsonb
            WHEN '>' THEN at.found > %(value)s::jsonb
            ELSE at.found >= %(value)s::jsonb
        END
    END)
ORDER BY ingress_sequence DESC
LIMIT %(limit)s

-- name: by_id
-- One event.
SELECT ingress_sequence, id, type, source, occurred_at, received_at, payload, correlation_id,
    ttl_ms, metadata, schema_version
FROM bus.workflow_events
WHERE id = %(id)s
