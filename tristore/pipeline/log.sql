-- name: head
SELECT epoch::text, last, earliest FROM bus.ingress_head

-- name: event_id
SELECT id FROM bus.workflow_events WHERE ingress_sequence = %(sequence)s

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

-- name: record_fed
-- A stretch that continues one of the last hour makes that one longer; one that is known, since the
-- driver was killed before Spark knew it, stays as it is.
WITH known AS (
    SELECT FROM timestore.fed
    WHERE dataset = %(dataset)s AND epoch = %(epoch)s
        AND after <= %(after)s AND through >= %(through)s
), longer AS (
    UPDATE timestore.fed SET through = %(through)s
    WHERE dataset = %(dataset)s AND epoch = %(epoch)s AND through = %(after)s
        AND begun_at > clock_timestamp() - interval '1 hour' AND NOT EXISTS (SELECT FROM known)
    RETURNING 1
)
INSERT INTO timestore.fed (dataset, epoch, after, through)
SELECT %(dataset)s, %(epoch)s, %(after)s, %(through)s
WHERE NOT EXISTS (SELECT FROM known) AND NOT EXISTS (SELECT FROM longer)
ON CONFLICT DO NOTHING

-- name: read_activity
-- The same for the rows that filestore events become; the view is also what queries read.
SELECT sequence, event_id, ordinal, occurred_at, type, command, mount, path, folder, node_id, kind,
       size_bytes, size_delta, state, outcome, duration_ms, principal, journal_id, correlation_id,
       previous_path
FROM bus.filestore_activity_v
WHERE sequence > {after} AND sequence <= {through}

-- name: count_activity
-- How many rows the view makes of a range, without making them: counted from it, a batch would
-- take as long as to be read.
SELECT coalesce(sum(CASE type
    WHEN 'filestore.nodes.imported' THEN coalesce(jsonb_array_length(payload -> 'nodes'), 0)
    WHEN 'filestore.node.moved'
        THEN CASE WHEN payload ->> 'previousMount' <> payload ->> 'mount' THEN 2 ELSE 1 END
    ELSE 1
END), 0)
FROM bus.workflow_events
WHERE ingress_sequence > %(after)s AND ingress_sequence <= %(through)s AND type LIKE 'filestore.%%'
