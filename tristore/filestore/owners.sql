-- name: register
INSERT INTO filestore.owners (id, host, boot, pid, started, lease_until)
VALUES (%(id)s, %(host)s, %(boot)s, %(pid)s, %(started)s,
    clock_timestamp() + make_interval(secs => %(lease)s))
ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until

-- name: leave
DELETE FROM filestore.owners WHERE id = %(id)s

-- name: open_claims
-- The entries under way, each with what is known of its owner and whether its lease is over.
SELECT DISTINCT c.journal_id, j.owner, j.plan ->> 'token',
    o.id IS NULL OR o.lease_until < clock_timestamp(), o.host, o.boot, o.pid, o.started
FROM filestore.claims c
JOIN filestore.journal_entries j ON j.id = c.journal_id
LEFT JOIN filestore.owners o ON o.id = j.owner
WHERE j.state = 'applying'

-- name: sweep
-- Owners that are long gone and left nothing open.
DELETE FROM filestore.owners o
WHERE lease_until < clock_timestamp() - interval '1 day' AND NOT EXISTS (
    SELECT FROM filestore.claims c JOIN filestore.journal_entries j ON j.id = c.journal_id
    WHERE j.owner = o.id
)
