-- name: newest
-- The highest number in the log, which the head row must name.
SELECT max(ingress_sequence) FROM bus.workflow_events

-- name: count
-- How many events stand between two numbers; without gaps, as many as the numbers.
SELECT count(*) FROM bus.workflow_events WHERE ingress_sequence BETWEEN %(low)s AND %(high)s
