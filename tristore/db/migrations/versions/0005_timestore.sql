CREATE SCHEMA timestore;

-- `log` datasets are fed from the event log by the pipeline, `ingest` ones by their users.
CREATE TABLE timestore.datasets (
    slug             text COLLATE "C" PRIMARY KEY,
    kind             text NOT NULL DEFAULT 'ingest' CHECK (kind IN ('log', 'ingest')),
    time_column      text NOT NULL,
    granularity      text NOT NULL CHECK (granularity IN ('hour', 'day', 'month')),
    -- [{"name", "type", "nullable"}] in order; grows by new nullable columns.
    schema           jsonb NOT NULL,
    retention        jsonb NOT NULL DEFAULT '{}',
    lateness_seconds integer NOT NULL DEFAULT 3600 CHECK (lateness_seconds >= 0),
    -- Which scope of a token reads and which one writes.
    read_scope       text NOT NULL DEFAULT 'timestore:read',
    write_scope      text NOT NULL DEFAULT 'timestore:write',
    status           text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'deleted')),
    -- The folder of its table below the tables' root; a dataset made anew gets another.
    folder           text NOT NULL,
    version          integer NOT NULL DEFAULT 1,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by       text NOT NULL,
    updated_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_by       text NOT NULL
);

-- One row: the folder of the tables carries this name in a file. One without it is where a disk
-- should be mounted, one with another name belongs to another database: neither is written to.
CREATE TABLE timestore.tables_root (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    name    uuid NOT NULL DEFAULT gen_random_uuid(),
    -- Whether the file was ever written; until then any folder may become the tables'.
    founded boolean NOT NULL DEFAULT false
);
INSERT INTO timestore.tables_root DEFAULT VALUES;

-- One row: staged batches are numbered under its lock, so a visible number has no invisible
-- smaller one and the pipeline can read them by position.
CREATE TABLE timestore.ingest_head (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    last  bigint NOT NULL DEFAULT 0,
    epoch uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO timestore.ingest_head DEFAULT VALUES;

-- A batch that is staged is durable: its file is whole and synced before the row exists.
CREATE TABLE timestore.ingest_batches (
    id              bigint PRIMARY KEY,
    dataset         text COLLATE "C" NOT NULL REFERENCES timestore.datasets,
    state           text NOT NULL DEFAULT 'staged' CHECK (state IN ('staged', 'committed', 'failed')),
    file            text NOT NULL,
    format          text NOT NULL,
    rows            bigint NOT NULL,
    bytes           bigint NOT NULL,
    from_time       timestamptz,
    to_time         timestamptz,
    schema_version  integer NOT NULL,
    table_version   bigint,
    error           text,
    token_id        uuid,
    principal       text,
    idempotency_key text,
    request_hash    bytea,
    correlation_id  text,
    staged_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    committed_at    timestamptz
);
CREATE UNIQUE INDEX ingest_batches_key ON timestore.ingest_batches (dataset, token_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND state <> 'failed';
CREATE INDEX ingest_batches_open ON timestore.ingest_batches (dataset, id) WHERE state = 'staged';

CREATE TABLE timestore.partitions (
    dataset       text COLLATE "C" NOT NULL REFERENCES timestore.datasets,
    partition     text COLLATE "C" NOT NULL,
    -- `removed` by retention; the row stays, so that late rows do not begin at revision 0 again.
    state         text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed', 'removed')),
    -- How often it was closed; late rows reopen it.
    revision      integer NOT NULL DEFAULT 0,
    from_time     timestamptz NOT NULL,
    to_time       timestamptz NOT NULL,
    rows          bigint NOT NULL DEFAULT 0,
    bytes         bigint NOT NULL DEFAULT 0,
    files         integer NOT NULL DEFAULT 0,
    table_version bigint,
    closed_at     timestamptz,
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dataset, partition)
);

CREATE TABLE timestore.exports (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset         text COLLATE "C" NOT NULL REFERENCES timestore.datasets,
    format          text NOT NULL CHECK (format IN ('parquet', 'csv', 'delta')),
    target          text NOT NULL,
    from_time       timestamptz,
    to_time         timestamptz,
    state           text NOT NULL DEFAULT 'queued'
        CHECK (state IN ('queued', 'running', 'completed', 'failed')),
    progress        jsonb NOT NULL DEFAULT '{}',
    rows            bigint,
    bytes           bigint,
    files           integer,
    error           text,
    -- A driver that dies over an export takes it up again, but not for ever.
    attempts        integer NOT NULL DEFAULT 0,
    table_version   bigint,
    principal       text,
    token_id        uuid,
    idempotency_key text,
    correlation_id  text,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at      timestamptz,
    completed_at    timestamptz
);
CREATE INDEX exports_open ON timestore.exports (id) WHERE state IN ('queued', 'running');
CREATE UNIQUE INDEX exports_key ON timestore.exports (token_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND state <> 'failed';

CREATE UNIQUE INDEX exports_target ON timestore.exports (target) WHERE state <> 'failed';

-- Which stretches of the log are in the table of a log dataset, told after each commit.
CREATE TABLE timestore.fed (
    dataset  text COLLATE "C" NOT NULL REFERENCES timestore.datasets,
    epoch    uuid NOT NULL,
    after    bigint NOT NULL,
    through  bigint NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dataset, epoch, through)
);

-- What operators ask of the pipeline's driver: it looks here between its own rounds.
CREATE TABLE timestore.pipeline_requests (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action      text NOT NULL CHECK (action IN ('close', 'compact', 'vacuum', 'backfill')),
    arguments   jsonb NOT NULL DEFAULT '{}',
    state       text NOT NULL DEFAULT 'queued'
        CHECK (state IN ('queued', 'running', 'completed', 'failed')),
    attempts    integer NOT NULL DEFAULT 0,
    progress    jsonb NOT NULL DEFAULT '{}',
    result      jsonb,
    error       text,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at  timestamptz,
    finished_at timestamptz
);
CREATE INDEX pipeline_requests_open ON timestore.pipeline_requests (id)
    WHERE state IN ('queued', 'running');

-- The one mapping from filestore events to rows; Spark's executors and the tail of a query both
-- read it. An import is a row a node, keyed (event_id, ordinal); a move between mounts is two: what
-- came to the one mount, and what left the other.
CREATE VIEW bus.filestore_activity_v AS
SELECT e.ingress_sequence AS sequence,
    e.id AS event_id,
    r.ordinal,
    e.occurred_at,
    e.type,
    coalesce(e.payload ->> 'command',
        CASE WHEN e.type = 'filestore.nodes.imported' THEN 'import'
             WHEN e.type IN ('filestore.node.reconciled', 'filestore.node.missing') THEN 'reconcile'
        END) AS command,
    r.mount,
    r.path,
    split_part(r.path, '/', 1) AS folder,
    r.node_id,
    r.kind,
    r.size_bytes,
    r.size_delta,
    r.state,
    coalesce(e.payload ->> 'outcome', e.payload ->> 'status') AS outcome,
    (e.payload ->> 'durationMs')::bigint AS duration_ms,
    e.payload ->> 'principal' AS principal,
    (e.payload ->> 'journalId')::bigint AS journal_id,
    e.correlation_id,
    -- Where a node that stayed on its mount came from: its bytes left those folders.
    CASE WHEN e.type = 'filestore.node.moved'
            AND coalesce(e.payload ->> 'previousMount', e.payload ->> 'mount') = e.payload ->> 'mount'
        THEN e.payload ->> 'previousPath' END AS previous_path
FROM bus.workflow_events e
CROSS JOIN LATERAL (
    SELECT 0 AS ordinal,
        e.payload ->> 'mount' AS mount,
        e.payload ->> 'path' AS path,
        e.payload ->> 'nodeId' AS node_id,
        e.payload ->> 'kind' AS kind,
        coalesce((e.payload ->> 'sizeBytes')::bigint, (e.payload ->> 'bytes')::bigint) AS size_bytes,
        (e.payload ->> 'sizeDelta')::bigint AS size_delta,
        e.payload ->> 'state' AS state
    WHERE e.type <> 'filestore.nodes.imported'
    UNION ALL
    SELECT 1, e.payload ->> 'previousMount', e.payload ->> 'previousPath', e.payload ->> 'nodeId',
        e.payload ->> 'kind', (e.payload ->> 'sizeBytes')::bigint,
        -(e.payload ->> 'sizeDelta')::bigint, e.payload ->> 'state'
    WHERE e.type = 'filestore.node.moved'
        AND e.payload ->> 'previousMount' <> e.payload ->> 'mount'
    UNION ALL
    SELECT (n.place - 1)::integer, e.payload ->> 'mount', n.node ->> 'path', n.node ->> 'nodeId',
        n.node ->> 'kind', (n.node ->> 'sizeBytes')::bigint, (n.node ->> 'sizeBytes')::bigint,
        'active'
    FROM jsonb_array_elements(e.payload -> 'nodes') WITH ORDINALITY AS n (node, place)
    WHERE e.type = 'filestore.nodes.imported'
) AS r
WHERE e.type LIKE 'filestore.%';

INSERT INTO timestore.datasets
    (slug, kind, time_column, granularity, schema, folder, created_by, updated_by)
VALUES
    ('events', 'log', 'occurred_at', 'day', '[
        {"name": "id", "type": "string"}, {"name": "type", "type": "string"},
        {"name": "source", "type": "string"}, {"name": "occurred_at", "type": "timestamp"},
        {"name": "received_at", "type": "timestamp"}, {"name": "ingress_sequence", "type": "long"},
        {"name": "payload", "type": "string"}, {"name": "correlation_id", "type": "string"},
        {"name": "ttl_ms", "type": "long"}, {"name": "metadata", "type": "string"},
        {"name": "schema_version", "type": "integer"}, {"name": "body_hash", "type": "binary"}
    ]', 'events', 'tristore', 'tristore'),
    ('filestore_activity', 'log', 'occurred_at', 'day', '[
        {"name": "sequence", "type": "long"}, {"name": "event_id", "type": "string"},
        {"name": "ordinal", "type": "integer"}, {"name": "occurred_at", "type": "timestamp"},
        {"name": "type", "type": "string"}, {"name": "command", "type": "string"},
        {"name": "mount", "type": "string"}, {"name": "path", "type": "string"},
        {"name": "folder", "type": "string"}, {"name": "node_id", "type": "string"},
        {"name": "kind", "type": "string"}, {"name": "size_bytes", "type": "long"},
        {"name": "size_delta", "type": "long"}, {"name": "state", "type": "string"},
        {"name": "outcome", "type": "string"}, {"name": "duration_ms", "type": "long"},
        {"name": "principal", "type": "string"}, {"name": "journal_id", "type": "long"},
        {"name": "correlation_id", "type": "string"}, {"name": "previous_path", "type": "string"}
    ]', 'filestore_activity', 'tristore', 'tristore'),
    ('filestore_growth', 'log', 'hour', 'month', '[
        {"name": "hour", "type": "timestamp"}, {"name": "mount", "type": "string"},
        {"name": "prefix", "type": "string"}, {"name": "depth", "type": "integer"},
        {"name": "bytes_in", "type": "long"}, {"name": "bytes_out", "type": "long"},
        {"name": "net_bytes", "type": "long"}, {"name": "created", "type": "long"},
        {"name": "updated", "type": "long"}, {"name": "deleted", "type": "long"},
        {"name": "moved", "type": "long"}
    ]', 'filestore_growth', 'tristore', 'tristore');
