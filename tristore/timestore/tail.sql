-- name: head
-- `cut`: events up to here are no longer in the log, only in tables. Where no pipeline has ever fed
-- one, there are no tables that could lack them.
SELECT last, epoch::text AS epoch,
    CASE WHEN EXISTS (SELECT FROM timestore.fed) THEN earliest - 1 ELSE 0 END AS cut
FROM bus.ingress_head

-- name: events
-- Numbers are written into the text: a bound parameter would keep ADBC from its COPY fast path.
SELECT id, type, source, occurred_at, received_at, ingress_sequence, payload::text AS payload,
       correlation_id, ttl_ms, metadata::text AS metadata, schema_version, body_hash
FROM bus.workflow_events
WHERE ingress_sequence > {after} AND ingress_sequence <= {through}
ORDER BY ingress_sequence
LIMIT {limit}

-- name: activity
-- The view that the pipeline's executors read as well.
SELECT sequence, event_id, ordinal, occurred_at, type, command, mount, path, folder, node_id, kind,
       size_bytes, size_delta, state, outcome, duration_ms, principal, journal_id, correlation_id,
       previous_path
FROM bus.filestore_activity_v
WHERE sequence > {after} AND sequence <= {through}
ORDER BY sequence
LIMIT {limit}

-- name: age
-- How long the oldest event that is left out has been in the log.
SELECT (extract(epoch FROM clock_timestamp() - received_at) * 1000)::bigint AS age
FROM bus.workflow_events WHERE ingress_sequence = {sequence}

-- name: staged
-- Batches that are not in the table yet. A dataset made anew does not see those of an earlier one,
-- which lie in another folder.
SELECT b.id, b.file, b.rows,
    (extract(epoch FROM clock_timestamp() - b.staged_at) * 1000)::bigint AS age
FROM timestore.ingest_batches b
JOIN timestore.datasets d ON d.slug = b.dataset
WHERE d.folder = $1 AND b.id > $2 AND b.state <> 'failed' AND split_part(b.file, '/', 2) = d.folder
ORDER BY b.id
LIMIT {limit}
