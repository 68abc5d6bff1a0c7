-- name: standing
-- What an id stands for now: in the log, and on its way there.
SELECT (SELECT body_hash FROM bus.workflow_events WHERE id = %(event_id)s),
    (SELECT body_hash FROM bus.outbox WHERE event_id = %(event_id)s AND state <> 'done' LIMIT 1)

-- name: renew
-- The outbox row of a refused event waits again, with the event as it is sent now: the ledger goes
-- on counting one row for one event.
UPDATE bus.outbox o
SET state = 'pending', attempt = 0, token = NULL, lease_until = NULL, done_at = NULL,
    source = %(source)s, body_hash = %(body_hash)s, envelope = %(envelope)s
FROM (
    SELECT id, day FROM bus.outbox WHERE event_id = %(event_id)s AND state = 'done'
    ORDER BY id DESC LIMIT 1
) AS newest
WHERE o.id = newest.id AND o.day = newest.day

-- name: acquit
-- An operator who replays an event that killed workers wants it tried again.
DELETE FROM bus.suspects WHERE raw_hash = %(raw_hash)s
