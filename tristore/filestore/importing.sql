-- name: begin
-- A chunk is one entry; it is finished in the transaction that makes it, so nobody sees it open.
-- The lock is for readers of the feed: whoever takes a number holds it from before (journal.sql).
-- With the number come ids for the nodes.
INSERT INTO filestore.journal_entries
    (command, mount_id, path, owner, principal, correlation_id, plan)
SELECT 'import', %(mount_id)s, %(path)s, %(owner)s, %(principal)s, %(correlation_id)s,
    jsonb_build_object('source', 'filestore.import', 'jobId', %(job_id)s::bigint)
FROM (SELECT pg_advisory_xact_lock_shared(7441, 0)) AS held
RETURNING id, ARRAY(
    SELECT nextval('filestore.nodes_id_seq') FROM generate_series(1, %(nodes)s)
)

-- name: alone
-- No command begins on the mount until this transaction ends. Taken last, for the length of one
-- question and the commit: a command that began before has its claims, one that begins after sees
-- the nodes, so no path is tracked twice.
SELECT pg_advisory_xact_lock(7442, %(mount_id)s)

-- name: taken
-- Those of the paths that an open command works on, alone or with the tree they lie in.
SELECT p.path FROM unnest(%(paths)s::text[]) AS p (path)
WHERE EXISTS (
    SELECT FROM filestore.claims c WHERE c.mount_id = %(mount_id)s AND c.path = p.path
) OR EXISTS (
    SELECT FROM filestore.claims c
    WHERE c.mount_id = %(mount_id)s AND c.subtree
        AND (c.path = '' OR starts_with(p.path, c.path || '/'))
)
UNION ALL
-- And those of the directories that are not what they were: what lies in them must wait.
SELECT d.path FROM unnest(%(ids)s::bigint[], %(directories)s::text[]) AS d (id, path)
WHERE NOT EXISTS (
    SELECT FROM filestore.nodes n
    WHERE n.id = d.id AND n.path = d.path AND n.kind = 'directory'
        AND n.state IN ('active', 'inconsistent')
)
