-- name: known
SELECT name::text, founded FROM timestore.tables_root

-- name: found
UPDATE timestore.tables_root SET founded = true WHERE NOT founded
