-- name: head
SELECT epoch::text, last, earliest FROM bus.ingress_head

-- name: read_range
-- Numbers are written into the text: a bound parameter would keep ADBC from its COPY fast path.
SELECT id, type, source, occurred_at, received_at, ingress_sequence, payload::text AS payload,
       correlation_id, ttl_ms, metadata::text AS metadata, schema_version, body_hash
FROM bus.workflow_events
WHERE ingress_sequence > {after} AND ingress_sequence <= {through}
ORDER BY ingress_sequence

-- name: record
-- How far the pipeline has come: shown to operators, and never passed by the log's retention.
INSERT INTO bus.cursors (consumer, sequence, epoch) VALUES (%(consumer)s, %(sequence)s, %(epoch)s)
ON CONFLICT (consumer) DO UPDATE
SET sequence = excluded.sequence, epoch = excluded.epoch, updated_at = clock_timestamp()

-- name: read_activity
-- The same for the rows that filestore events become; the view is also what queries read.
SELECT sequence, event_id, ordinal, occurred_at, type, command, mount, path, folder, node_id, kind,
       size_bytes, size_delta, state, outcome, duration_ms, principal, journal_id, correlation_id,
       previous_path
FROM bus.filestore_activity_v
WHERE sequence > {after} AND sequence <= {through}

-- name: count_activity
SELECT count(*) FROM bus.filestore_activity_v
WHERE sequence > %(after)s AND sequence <= %(through)s
