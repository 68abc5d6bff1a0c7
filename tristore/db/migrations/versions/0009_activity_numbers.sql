-- Anybody may publish events that are called filestore.…, and JSON knows 10.0, 1e30 and texts where
-- a number is expected: a cast would fail for the whole range in which such an event lies, and with
-- it the pipeline and every query. Beyond 2^53 programs disagree about JSON's numbers, and a few
-- such sizes would be more than their sum can hold. Nearly all values go the first, quick way.
-- Stable, as what it calls is: otherwise it would not become part of the query, and cost more.
CREATE FUNCTION bus.whole_number(value text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN length(value) < 16 AND pg_input_is_valid(value, 'bigint') THEN value::bigint
    WHEN pg_input_is_valid(value, 'numeric')
    THEN CASE WHEN value::numeric BETWEEN -9007199254740992 AND 9007199254740992
        THEN value::numeric::bigint END
END;

-- The one mapping from filestore events to rows; Spark's executors and the tail of a query both
-- read it. An import is a row a node, keyed (event_id, ordinal); a move between mounts is two: what
-- came to the one mount, and what left the other.
CREATE OR REPLACE VIEW bus.filestore_activity_v AS
SELECT e.ingress_sequence AS sequence,
    e.id AS event_id,
    r.ordinal,
    e.occurred_at,
    e.type,
    coalesce(e.payload ->> 'command',
        CASE WHEN e.type = 'filestore.nodes.imported' THEN 'import'
             WHEN e.type IN ('filestore.node.reconciled', 'filestore.node.missing') THEN 'reconcile'
        END) AS command,
    r.mount,
    r.path,
    split_part(r.path, '/', 1) AS folder,
    r.node_id,
    r.kind,
    r.size_bytes,
    r.size_delta,
    r.state,
    coalesce(e.payload ->> 'outcome', e.payload ->> 'status') AS outcome,
    bus.whole_number(e.payload ->> 'durationMs') AS duration_ms,
    e.payload ->> 'principal' AS principal,
    bus.whole_number(e.payload ->> 'journalId') AS journal_id,
    e.correlation_id,
    -- Where a node that stayed on its mount came from: its bytes left those folders.
    CASE WHEN e.type = 'filestore.node.moved'
            AND coalesce(e.payload ->> 'previousMount', e.payload ->> 'mount') = e.payload ->> 'mount'
        THEN e.payload ->> 'previousPath' END AS previous_path
FROM bus.workflow_events e
CROSS JOIN LATERAL (
    SELECT 0 AS ordinal,
        e.payload ->> 'mount' AS mount,
        e.payload ->> 'path' AS path,
        e.payload ->> 'nodeId' AS node_id,
        e.payload ->> 'kind' AS kind,
        coalesce(bus.whole_number(e.payload ->> 'sizeBytes'),
            bus.whole_number(e.payload ->> 'bytes')) AS size_bytes,
        bus.whole_number(e.payload ->> 'sizeDelta') AS size_delta,
        e.payload ->> 'state' AS state
    WHERE e.type <> 'filestore.nodes.imported'
    UNION ALL
    SELECT 1, e.payload ->> 'previousMount', e.payload ->> 'previousPath', e.payload ->> 'nodeId',
        e.payload ->> 'kind', bus.whole_number(e.payload ->> 'sizeBytes'),
        -bus.whole_number(e.payload ->> 'sizeDelta'), e.payload ->> 'state'
    WHERE e.type = 'filestore.node.moved'
        AND e.payload ->> 'previousMount' <> e.payload ->> 'mount'
    UNION ALL
    SELECT (n.place - 1)::integer, e.payload ->> 'mount', n.node ->> 'path', n.node ->> 'nodeId',
        n.node ->> 'kind', bus.whole_number(n.node ->> 'sizeBytes'),
        bus.whole_number(n.node ->> 'sizeBytes'),
        'active'
    FROM jsonb_array_elements(e.payload -> 'nodes') WITH ORDINALITY AS n (node, place)
    WHERE e.type = 'filestore.nodes.imported'
) AS r
WHERE e.type LIKE 'filestore.%';
