-- name: value
-- What stands at a path.
(metadata #> {path}::text[])

-- name: number
-- The number at a path, null for everything else. Declared indexes hold this very expression.
CASE WHEN jsonb_typeof(metadata #> {path}::text[]) = 'number'
    THEN (metadata #> {path}::text[])::numeric END

-- name: text
-- The start of the text at a path, null for what is none; short enough for any index, and ordered
-- by code point whatever the database's own collation. Declared indexes hold this too.
left(CASE WHEN jsonb_typeof(metadata #> {path}::text[]) IN ('string', 'boolean')
    THEN metadata #>> {path}::text[] END, 200) COLLATE "C"

-- name: whole_text
CASE WHEN jsonb_typeof(metadata #> {path}::text[]) = 'string'
    THEN metadata #>> {path}::text[] END COLLATE "C"

-- name: contained
-- Implied by equality, and what the index of all metadata answers.
metadata @> {nested}::jsonb

-- name: json_has_key
jsonb_typeof(metadata #> {path}::text[]) = 'object' AND (metadata #> {path}::text[]) ? {value}::text

-- name: json_array_contains
jsonb_typeof(metadata #> {path}::text[]) = 'array'
    AND (metadata #> {path}::text[]) @> {value}::jsonb

-- name: compared
{left} {operator} {right}

-- name: any_of
{left} = ANY({list})

-- name: is_null
{left} IS NULL

-- name: is_there
{left} IS NOT NULL

-- name: not_true
-- The exact complement: also true where the condition is unknown, as of a path that is missing.
({inner}) IS NOT TRUE

-- name: starts_with
starts_with({left}, {value}::text)

-- name: has_substring
strpos({left}, {value}::text) > 0

-- name: tags_contain
tags @> {value}::text[]

-- name: tags_within
tags <@ {value}::text[]

-- name: tags_overlap
tags && {value}::text[]

-- name: tag_starts_with
EXISTS (SELECT FROM unnest(tags) AS tag WHERE starts_with(tag, {value}::text))

-- name: tagged
tags <> '{{}}'

-- name: in_namespaces
namespace = ANY({names}::text[])

-- name: in_namespace
namespace = {namespace}::text

-- name: words_match
metastore.record_text({paths}::jsonb, metadata) @@ phraseto_tsquery('simple', {value}::text)
