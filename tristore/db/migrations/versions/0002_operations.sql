-- Schemas registered at run time; those of the catalogue ship with the package. `active` is
-- used for new events, `deprecated` only for events that name the version, `disabled` for none.
CREATE TABLE bus.event_schemas (
    type       text COLLATE "C" NOT NULL,
    version    integer NOT NULL CHECK (version > 0),
    status     text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'deprecated', 'disabled')),
    schema     jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    revision   bigint NOT NULL,
    PRIMARY KEY (type, version)
);
CREATE INDEX event_schemas_revision ON bus.event_schemas (revision);

-- One row. Whoever changes a schema locks it and gives the row the next number, so a process that
-- knows number n finds all it does not know above n, and learns with one cheap question whether
-- there is anything.
CREATE TABLE bus.schema_head (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    revision bigint  NOT NULL DEFAULT 0
);
INSERT INTO bus.schema_head DEFAULT VALUES;

-- How far each durable reader of the log has come. Retention never passes the slowest one.
CREATE TABLE bus.cursors (
    consumer   text COLLATE "C" PRIMARY KEY,
    sequence   bigint NOT NULL DEFAULT 0,
    epoch      uuid NOT NULL,
    types      text[] NOT NULL DEFAULT '{*}',
    last_error text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A browser's stand-ins for a bearer token: a cookie, and a ticket that opens one socket.
CREATE TABLE bus.sessions (
    hash       bytea PRIMARY KEY,
    token_id   uuid NOT NULL REFERENCES bus.tokens ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE TABLE bus.tickets (
    hash       bytea PRIMARY KEY,
    token_id   uuid NOT NULL REFERENCES bus.tokens ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);

-- A dead letter that was replayed or discarded stays as a row: the ledger still accounts for it.
ALTER TABLE bus.dead_letters
    ADD COLUMN state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'replayed', 'discarded')),
    ADD COLUMN settled_at timestamptz,
    ADD COLUMN settled_by text,
    ADD COLUMN replayed_as text;
CREATE INDEX dead_letters_event_id ON bus.dead_letters (event_id);
CREATE INDEX dead_letters_open ON bus.dead_letters (id) WHERE state = 'open';
CREATE INDEX dead_letters_reason ON bus.dead_letters (reason, id) WHERE state = 'open';
CREATE INDEX dead_letters_last_seen_at ON bus.dead_letters (last_seen_at);
-- A replay that is refused again is a new letter; only an open one counts up.
ALTER TABLE bus.dead_letters DROP CONSTRAINT dead_letters_raw_hash_reason_key;
CREATE UNIQUE INDEX dead_letters_raw ON bus.dead_letters (raw_hash, reason) WHERE state = 'open';

-- A page by type and source, newest first, must not read past what it shows.
CREATE INDEX workflow_events_type_source ON bus.workflow_events (type, source, ingress_sequence);
CREATE INDEX workflow_events_received_at ON bus.workflow_events (received_at);
-- Events that were received seconds, or minutes, after or before they say they happened. All
-- others of a time range lie in a known range of sequence numbers, so a page by time need not look
-- elsewhere.
CREATE INDEX workflow_events_off_seconds ON bus.workflow_events (ingress_sequence)
    WHERE received_at - occurred_at > interval '5 seconds'
        OR received_at - occurred_at < interval '-5 seconds';
CREATE INDEX workflow_events_off_minutes ON bus.workflow_events (ingress_sequence)
    WHERE received_at - occurred_at > interval '10 minutes'
        OR received_at - occurred_at < interval '-10 minutes';
CREATE INDEX outbox_created_at ON bus.outbox (created_at);

-- Events that were being processed, alone, when their worker died; see events/suspects.py.
CREATE TABLE bus.suspects (
    raw_hash     bytea PRIMARY KEY,
    deaths       integer NOT NULL DEFAULT 1,
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
