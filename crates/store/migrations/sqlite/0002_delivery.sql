-- Tables and columns for delivery: source addresses in pools, gates, suppressions, limits, transcripts.

-- At most one pool is shared: it takes the mail that exceeds the warm-up limits of other pools.
CREATE TABLE pools (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    shared INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX pools_shared ON pools (shared) WHERE shared = 1;

CREATE TABLE sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pool_id INTEGER NOT NULL REFERENCES pools (id),
    address TEXT NOT NULL UNIQUE,
    helo TEXT NOT NULL,
    weight INTEGER NOT NULL,
    warmup_started_at INTEGER,
    warmup_paused_reason TEXT,
    created_at INTEGER NOT NULL
);
CREATE INDEX sources_by_pool ON sources (pool_id);

-- Outcomes per source and UTC day (days since 1970), for warm-up.
CREATE TABLE source_days (
    source_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    bounced INTEGER NOT NULL,
    complained INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (source_id, day)
) WITHOUT ROWID;

ALTER TABLE servers ADD COLUMN pool_id INTEGER REFERENCES pools (id);
ALTER TABLE servers ADD COLUMN send_rate TEXT;
ALTER TABLE servers ADD COLUMN hourly_limit INTEGER;

-- Submitted messages per server and hour (hours since 1970), only for servers with an hourly limit.
CREATE TABLE server_hours (
    server_id INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (server_id, hour)
) WITHOUT ROWID;

ALTER TABLE domains ADD COLUMN dkim_ed25519_selector TEXT;
ALTER TABLE domains ADD COLUMN dkim_ed25519_private_key BLOB;
ALTER TABLE domains ADD COLUMN dkim_ed25519_public_key BLOB;

-- `pool_id` is the pool that the send request named, not the pool of the server.
ALTER TABLE queue ADD COLUMN pool_id INTEGER;
-- Claims read the queue in this order; each continues where the previous one ended.
DROP INDEX queue_by_due;
CREATE INDEX queue_by_due ON queue (due_at, message_id);

ALTER TABLE deliveries ADD COLUMN possible_duplicate INTEGER NOT NULL DEFAULT 0;

CREATE TABLE delivery_transcripts (
    server_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    delivery_id INTEGER NOT NULL,
    transcript TEXT NOT NULL,
    PRIMARY KEY (server_id, message_id, delivery_id)
);

CREATE INDEX messages_by_hold ON messages (hold_expiry) WHERE hold_expiry IS NOT NULL;

-- `address` is normalised: local part in lower case, domain in the form that the DNS compares.
CREATE TABLE suppressions (
    server_id INTEGER NOT NULL,
    address TEXT NOT NULL,
    reason TEXT NOT NULL,
    details TEXT NOT NULL,
    origin_message_id INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (server_id, address)
) WITHOUT ROWID;

CREATE TABLE gates (
    scope_kind TEXT NOT NULL,
    scope_key TEXT NOT NULL,
    automatic INTEGER NOT NULL,
    action TEXT NOT NULL,
    per_minute INTEGER,
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ends_at INTEGER,
    PRIMARY KEY (scope_kind, scope_key, automatic)
) WITHOUT ROWID;
