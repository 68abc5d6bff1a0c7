-- name: apply
-- See 0006_filestore_steps.sql.
SELECT filestore.apply_steps(%(steps)s::json)
