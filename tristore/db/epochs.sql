-- name: renew
-- Of the log and of staged ingests, which have numbers of their own.
WITH log AS (
    UPDATE bus.ingress_head SET epoch = gen_random_uuid() RETURNING epoch
), ingests AS (
    UPDATE timestore.ingest_head SET epoch = gen_random_uuid() RETURNING epoch
)
SELECT log.epoch::text, ingests.epoch::text FROM log, ingests
