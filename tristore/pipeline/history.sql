-- name: span_of_time
-- Which numbers the events of a span of time have; others may lie between them.
SELECT coalesce(min(ingress_sequence) - 1, 0), coalesce(max(ingress_sequence), 0)
FROM bus.workflow_events
WHERE (%(start)s::timestamptz IS NULL OR occurred_at >= %(start)s)
    AND (%(end)s::timestamptz IS NULL OR occurred_at < %(end)s)
