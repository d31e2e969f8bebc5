-- Tables and columns for delivery: source addresses in pools, gates, suppressions, limits, transcripts.

-- At most one pool is shared: it takes the mail that exceeds the warm-up limits of other pools.
CREATE TABLE pools (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    shared BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX pools_shared ON pools (shared) WHERE shared = 1;

CREATE TABLE sources (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pool_id BIGINT NOT NULL REFERENCES pools (id),
    address TEXT NOT NULL UNIQUE,
    helo TEXT NOT NULL,
    weight BIGINT NOT NULL,
    warmup_started_at BIGINT,
    warmup_paused_reason TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX sources_by_pool ON sources (pool_id);

-- Outcomes per source and UTC day (days since 1970), for warm-up.
CREATE TABLE source_days (
    source_id BIGINT NOT NULL,
    day BIGINT NOT NULL,
    sent BIGINT NOT NULL,
    bounced BIGINT NOT NULL,
    complained BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (source_id, day)
);

ALTER TABLE servers ADD COLUMN pool_id BIGINT REFERENCES pools (id);
ALTER TABLE servers ADD COLUMN send_rate TEXT;
ALTER TABLE servers ADD COLUMN hourly_limit BIGINT;

-- Submitted messages per server and hour (hours since 1970), only for servers with an hourly limit.
CREATE TABLE server_hours (
    server_id BIGINT NOT NULL,
    hour BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    PRIMARY KEY (server_id, hour)
);

ALTER TABLE domains ADD COLUMN dkim_ed25519_selector TEXT;
ALTER TABLE domains ADD COLUMN dkim_ed25519_private_key BYTEA;
ALTER TABLE domains ADD COLUMN dkim_ed25519_public_key BYTEA;

-- First epoch of the current owner: claims with earlier epochs belong to another process.
ALTER TABLE nodes ADD COLUMN owner_since BIGINT NOT NULL DEFAULT 0;

-- `pool_id` is the pool that the send request named, not the pool of the server. `begun_at` is set, by the database's
-- clock, right before the message is transmitted: from then on it may have been sent.
ALTER TABLE queue ADD COLUMN pool_id BIGINT;
ALTER TABLE queue ADD COLUMN begun_at BIGINT;
DROP INDEX queue_by_due;
CREATE INDEX queue_by_due ON queue (due_at, message_id) WHERE claimed_node IS NULL;

ALTER TABLE deliveries ADD COLUMN possible_duplicate BIGINT NOT NULL DEFAULT 0;

CREATE TABLE delivery_transcripts (
    server_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    delivery_id BIGINT NOT NULL,
    transcript TEXT NOT NULL,
    PRIMARY KEY (server_id, message_id, delivery_id)
) PARTITION BY RANGE (message_id);

CREATE INDEX messages_by_hold ON messages (hold_expiry) WHERE hold_expiry IS NOT NULL;

-- `address` is normalised: local part in lower case, domain in the form that the DNS compares.
CREATE TABLE suppressions (
    server_id BIGINT NOT NULL,
    address TEXT NOT NULL,
    reason TEXT NOT NULL,
    details TEXT NOT NULL,
    origin_message_id BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (server_id, address)
);

CREATE TABLE gates (
    scope_kind TEXT NOT NULL,
    scope_key TEXT NOT NULL,
    automatic BIGINT NOT NULL,
    action TEXT NOT NULL,
    per_minute BIGINT,
    reason TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    ends_at BIGINT,
    PRIMARY KEY (scope_kind, scope_key, automatic)
);
