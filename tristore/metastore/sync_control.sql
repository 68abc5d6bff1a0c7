-- name: glance
-- Whether there is anything to do; asked without a lock, so that an idle sync costs nothing.
SELECT c.sequence IS NULL AS lost, s.paused,
    h.last <> c.sequence OR h.epoch <> c.epoch AS behind,
    EXISTS (SELECT FROM metastore.sync_rebuilds WHERE finished_at IS NULL) AS rebuilding,
    EXISTS (
        SELECT FROM metastore.sync_refusals f
        LEFT JOIN metastore.namespaces n ON n.name = f.namespace
        WHERE f.namespace = %(namespace)s AND f.reason <> 'unreadable'
            AND f.rules_version IS DISTINCT FROM coalesce(n.version, 0)
    ) AS due
FROM metastore.sync_control s CROSS JOIN bus.ingress_head h
LEFT JOIN bus.cursors c ON c.consumer = %(consumer)s

-- name: take_turn
-- One page at a time, of the sync or of a rebuild, whatever the number of processes.
SELECT c.sequence, c.epoch::text AS epoch, c.types, s.paused
FROM bus.cursors c CROSS JOIN metastore.sync_control s
WHERE c.consumer = %(consumer)s
FOR UPDATE OF c

-- name: switch
UPDATE metastore.sync_control
SET paused = %(paused)s, changed_by = %(by)s, changed_at = clock_timestamp()

-- name: in_hand
-- Waits for the page that is being applied, if any: after this, whoever takes the cursor sees the
-- switch as it stands now.
SELECT FROM bus.cursors WHERE consumer = %(consumer)s FOR UPDATE

-- name: settle_in
-- Says where the sync writes from now on; returns where it wrote before.
UPDATE metastore.sync_control s SET namespace = %(namespace)s
FROM (SELECT namespace FROM metastore.sync_control FOR UPDATE) AS before
WHERE s.namespace IS DISTINCT FROM %(namespace)s
RETURNING before.namespace
