-- name: renumber
-- Records that were lost without a purge, in a table that was damaged or emptied by hand: their
-- audit rows are still there, so their versions go on from the last.
INSERT INTO metastore.purges AS p (namespace, key, version)
SELECT a.namespace, a.key, max(a.version)
FROM metastore.record_audits a
WHERE a.namespace = %(namespace)s AND a.key = ANY (%(keys)s) AND NOT EXISTS (
    SELECT FROM metastore.records r WHERE r.namespace = a.namespace AND r.key = a.key
)
GROUP BY a.namespace, a.key
ON CONFLICT (namespace, key) DO UPDATE SET version = greatest(p.version, excluded.version)

-- name: make_namespace
INSERT INTO metastore.namespaces (name, created_by, updated_by)
VALUES (%(name)s, 'filestore.sync', 'filestore.sync')
ON CONFLICT DO NOTHING
