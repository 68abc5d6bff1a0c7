CREATE SCHEMA bus;

-- One row. Whoever appends to the log locks it first and gives the numbers last, so a sequence
-- number that is visible has no invisible smaller one. `epoch` changes when history may have
-- (restore, promotion); every cursor carries it. `earliest` is the first number still kept.
CREATE TABLE bus.ingress_head (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    last     bigint  NOT NULL DEFAULT 0,
    earliest bigint  NOT NULL DEFAULT 1,
    epoch    uuid    NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO bus.ingress_head DEFAULT VALUES;

CREATE TABLE bus.workflow_events (
    id               text COLLATE "C" PRIMARY KEY,
    type             text COLLATE "C" NOT NULL,
    source           text COLLATE "C" NOT NULL,
    occurred_at      timestamptz NOT NULL,
    received_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    ingress_sequence bigint NOT NULL UNIQUE,
    payload          jsonb NOT NULL,
    correlation_id   text,
    ttl_ms           bigint,
    metadata         jsonb,
    schema_version   integer,
    body_hash        bytea NOT NULL
);
CREATE INDEX workflow_events_type ON bus.workflow_events (type, ingress_sequence);
CREATE INDEX workflow_events_source ON bus.workflow_events (source, ingress_sequence);
CREATE INDEX workflow_events_occurred_at ON bus.workflow_events (occurred_at);
CREATE INDEX workflow_events_correlation_id
    ON bus.workflow_events (correlation_id, ingress_sequence) WHERE correlation_id IS NOT NULL;

-- What was refused, kept as the bytes that arrived. A redelivered bad event finds its row again.
CREATE TABLE bus.dead_letters (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id      text,
    type          text,
    source        text,
    reason        text NOT NULL,
    errors        jsonb NOT NULL,
    raw           bytea NOT NULL,
    raw_hash      bytea NOT NULL,
    attempts      integer NOT NULL DEFAULT 1,
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (raw_hash, reason)
);

-- Events on their way to the log. `done` is set only by the transaction that stores the event
-- or its dead letter; a lease that runs out means the queue lost the job, and it is sent again.
-- One partition a day, dropped whole once nothing in it waits; the default partition takes what
-- arrives while nobody makes partitions, so that a store's transaction never fails for want of one.
CREATE TABLE bus.outbox (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    day         date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
    event_id    text COLLATE "C" NOT NULL,
    source      text COLLATE "C" NOT NULL,
    body_hash   bytea NOT NULL,
    envelope    text NOT NULL,
    state       text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'enqueued', 'done')),
    attempt     integer NOT NULL DEFAULT 0,
    token       text,
    lease_until timestamptz,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at     timestamptz,
    PRIMARY KEY (id, day),
    UNIQUE (event_id, day)
) PARTITION BY RANGE (day);
CREATE TABLE bus.outbox_default PARTITION OF bus.outbox DEFAULT;
CREATE INDEX outbox_pending ON bus.outbox (id) WHERE state = 'pending';
CREATE INDEX outbox_leases ON bus.outbox (lease_until) WHERE state = 'enqueued';
CREATE INDEX outbox_tokens ON bus.outbox (token) WHERE state = 'enqueued';

-- Only the hash of a token is kept. A null allow-list means no limit.
CREATE TABLE bus.tokens (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name       text NOT NULL,
    hash       bytea NOT NULL UNIQUE,
    scopes     text[] NOT NULL,
    namespaces text[],
    mounts     text[],
    datasets   text[],
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    revoked_at timestamptz
);
