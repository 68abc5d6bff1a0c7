CREATE SCHEMA metastore;

CREATE TABLE metastore.namespaces (
    name          text COLLATE "C" PRIMARY KEY,
    -- JSON Schema of the metadata, without the reserved object.
    schema        jsonb,
    allowed_tags  text[],
    require_owner boolean NOT NULL DEFAULT false,
    key_pattern   text,
    -- Metadata paths that get an index of their own, and those searched as text.
    indexes       jsonb NOT NULL DEFAULT '[]',
    text_fields   jsonb NOT NULL DEFAULT '[]',
    version       integer NOT NULL DEFAULT 1,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by    text NOT NULL,
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_by    text NOT NULL
);

CREATE TABLE metastore.records (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- No foreign key: every writer makes the namespace first and holds its rules, and namespaces
    -- are never removed; the check would cost a row lock for each record.
    namespace  text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    metadata   jsonb NOT NULL,
    tags       text[] NOT NULL DEFAULT '{}',
    owner      text COLLATE "C",
    version    integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    updated_by text NOT NULL,
    deleted_at timestamptz,
    UNIQUE (namespace, key)
) WITH (fillfactor = 85);

-- One index for every metadata value and every tag: a search for both reads only what has both. What
-- waits to be merged into it is kept short, since each search reads it through.
CREATE INDEX records_content ON metastore.records
    USING gin (metadata jsonb_path_ops, tags) WITH (gin_pending_list_limit = 1024);
-- The orders a list is walked in; the key's is that of the unique constraint.
CREATE INDEX records_updated_at ON metastore.records (namespace, updated_at, id)
    WHERE deleted_at IS NULL;
CREATE INDEX records_created_at ON metastore.records (namespace, created_at, id)
    WHERE deleted_at IS NULL;
CREATE INDEX records_owner ON metastore.records (namespace, owner, id)
    WHERE deleted_at IS NULL AND owner IS NOT NULL;

-- The words of the texts at some paths, each a list of keys; the index a namespace declares for
-- them holds this very expression. Words are lower-cased and not stemmed: no language is assumed.
CREATE FUNCTION metastore.record_text(paths jsonb, metadata jsonb) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_to_tsvector('simple'::regconfig, (
    SELECT coalesce(jsonb_agg(metadata #> ARRAY(SELECT jsonb_array_elements_text(p.path))), '[]')
    FROM jsonb_array_elements(paths) AS p (path)
), '["string"]');

-- The whole record as it was after each version; what was before it is the version below. Kept
-- when a record is purged only as the fact that it was, without its content.
CREATE TABLE metastore.record_audits (
    namespace      text COLLATE "C" NOT NULL,
    key            text COLLATE "C" NOT NULL,
    version        integer NOT NULL,
    action         text NOT NULL CHECK (action IN ('create', 'update', 'delete', 'restore', 'purge')),
    metadata       jsonb,
    tags           text[],
    owner          text,
    deleted        boolean NOT NULL DEFAULT false,
    changed        text[] NOT NULL DEFAULT '{}',
    restored_from  integer,
    actor          text NOT NULL,
    correlation_id text,
    at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (namespace, key, version)
);

-- The last version of a purged record: one that is made under its key again goes on from there, so
-- that a version never means two things.
CREATE TABLE metastore.purges (
    namespace text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    version   integer NOT NULL,
    PRIMARY KEY (namespace, key)
);

-- Answers to writes that carried an Idempotency-Key; a key belongs to the token that used it.
CREATE TABLE metastore.idempotency (
    token_id     uuid NOT NULL,
    key          text NOT NULL,
    request_hash bytea NOT NULL,
    status       integer NOT NULL,
    -- Not jsonb: the answer is given again as it was.
    answer       json NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (token_id, key)
);
CREATE INDEX idempotency_created_at ON metastore.idempotency (created_at);

-- How the records of files follow the filestore. One row; `paused` holds for every sync process.
-- `namespace` is where the sync wrote last: when the setting names another, it starts anew there.
CREATE TABLE metastore.sync_control (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    namespace  text COLLATE "C",
    paused     boolean NOT NULL DEFAULT false,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text
);
INSERT INTO metastore.sync_control DEFAULT VALUES;

-- What a file's record should say and may not, by the rules of its namespace or because a hook
-- failed. `rules_version` is the version of the rules that refused it; null asks for another try.
CREATE TABLE metastore.sync_refusals (
    namespace      text COLLATE "C" NOT NULL,
    key            text COLLATE "C" NOT NULL,
    reason         text NOT NULL CHECK (reason IN ('rules', 'failed', 'unreadable')),
    view           jsonb NOT NULL,
    errors         jsonb NOT NULL,
    sequence       bigint NOT NULL,
    ordinal        integer NOT NULL,
    event_id       text NOT NULL,
    correlation_id text,
    rules_version  integer,
    at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (namespace, key)
);

-- A reading of the log from its beginning. At most one is open; what it has read is committed with
-- what it wrote, so that any sync process can go on with it.
CREATE TABLE metastore.sync_rebuilds (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace      text COLLATE "C" NOT NULL,
    requested_by   text NOT NULL,
    requested_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    epoch          uuid NOT NULL,
    first_sequence bigint NOT NULL,
    sequence       bigint NOT NULL,
    target         bigint NOT NULL,
    -- After the reading, records are compared with it in the order of their keys.
    compared       text COLLATE "C" NOT NULL DEFAULT '',
    events         bigint NOT NULL DEFAULT 0,
    changed        bigint NOT NULL DEFAULT 0,
    unknown        bigint NOT NULL DEFAULT 0,
    finished_at    timestamptz,
    error          text
);
CREATE UNIQUE INDEX sync_rebuilds_open ON metastore.sync_rebuilds ((true))
    WHERE finished_at IS NULL;

-- What the log says of each node, collected by the open rebuild: a record may claim a version that
-- no event has, and that cannot be seen before the whole log is read.
CREATE TABLE metastore.sync_truth (
    key     text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    change  jsonb NOT NULL
);

-- Holds the rules of namespaces as they are until the caller's transaction ends, and says which
-- version they have. Advisory locks, because thousands of writers sharing one row lock would write
-- it down each time; in name order, and in a function, so that the rules are read after the locks
-- were got. Whoever changes rules takes the lock alone. From here on the transaction waits for no
-- lock longer than a caller waits for an answer.
CREATE FUNCTION metastore.hold_rules(names text[])
RETURNS TABLE (name text, version integer) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('lock_timeout', '4s', true);
    PERFORM pg_advisory_xact_lock_shared(metastore.rules_lock(n))
    FROM unnest(names) AS n ORDER BY n COLLATE "C";
    RETURN QUERY SELECT s.name, s.version FROM metastore.namespaces s WHERE s.name = ANY (names);
END $$;

CREATE FUNCTION metastore.rules_lock(name text) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT hashtextextended('tristore.metastore.rules/' || name, 0) $$;

-- The same for one record that is thought to be new, checked by rules of a known version: fails,
-- and with it the caller's transaction, where that does not hold any more.
CREATE FUNCTION metastore.begin_create(namespace text, key text, known integer)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('lock_timeout', '4s', true);
    PERFORM pg_advisory_xact_lock_shared(metastore.rules_lock(begin_create.namespace));
    IF NOT EXISTS (
        SELECT FROM metastore.namespaces n
        WHERE n.name = begin_create.namespace AND n.version = begin_create.known
    ) OR EXISTS (
        SELECT FROM metastore.purges p
        WHERE p.namespace = begin_create.namespace AND p.key = begin_create.key
    ) THEN
        RAISE EXCEPTION 'the rules changed, or the key was used before'
            USING ERRCODE = 'serialization_failure';
    END IF;
END $$;
