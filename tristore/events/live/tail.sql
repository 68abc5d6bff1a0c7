-- name: page
-- The events after a position, in order: at most `limit`, and at most `bytes` of payload unless
-- the first alone is larger. A reader far behind holds one page in memory, whatever its events.
WITH next AS (
    SELECT ingress_sequence, octet_length(payload::text) AS bytes
    FROM bus.workflow_events
    WHERE ingress_sequence > %(after)s
    ORDER BY ingress_sequence
    LIMIT %(limit)s
), measured AS (
    SELECT ingress_sequence, sum(bytes) OVER (ORDER BY ingress_sequence) AS total FROM next
), reach AS (
    SELECT coalesce(
        max(ingress_sequence) FILTER (WHERE total <= %(bytes)s), min(ingress_sequence)
    ) AS last
    FROM measured
)
SELECT ingress_sequence, id, type, source, occurred_at, received_at, payload, correlation_id,
    ttl_ms, metadata, schema_version
FROM bus.workflow_events
WHERE ingress_sequence > %(after)s AND ingress_sequence <= (SELECT last FROM reach)
ORDER BY ingress_sequence
