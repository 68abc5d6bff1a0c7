-- Schemas registered at run time; those of the catalogue ship with the package. `active` is
-- used for new events, `deprecated` only for events that name the version, `disabled` for none.
CREATE TABLE bus.event_schemas (
    type       text COLLATE "C" NOT NULL,
    version    integer NOT NULL CHECK (version > 0),
    status     text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'deprecated', 'disabled')),
    schema     jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    PRIMARY KEY (type, version)
);

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

-- A page by type and source, newest first, must not read past what it shows.
CREATE INDEX workflow_events_type_source ON bus.workflow_events (type, source, ingress_sequence);
CREATE INDEX workflow_events_received_at ON bus.workflow_events (received_at);
CREATE INDEX outbox_created_at ON bus.outbox (created_at);
