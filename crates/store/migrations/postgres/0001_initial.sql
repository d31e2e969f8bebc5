-- The first schema. Times are microseconds since 1970 UTC, flags are 0/1 and structured values are JSON text, so that
-- one SQL text serves both engines. Keys of hot tables begin with the server, so that tables can be sharded by it. Big
-- tables are partitioned by time-ordered id, one partition a week (postgres/partitions.rs); retention drops whole
-- partitions.

CREATE TABLE settings (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Node numbers are leased (postgres/lease.rs); `epoch` fences a node that lost its lease.
CREATE TABLE nodes (
    node BIGINT PRIMARY KEY,
    owner TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    lease_until BIGINT NOT NULL
);
INSERT INTO nodes SELECT n, '', 0, 0 FROM generate_series(0, 31) AS n;

-- Highest id handed out by a node; every commit updates it. Each kind of batch has its own row (`lane`), so that the kinds
-- do not wait for each other.
CREATE TABLE node_ids (
    node BIGINT NOT NULL,
    lane BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    last_id BIGINT NOT NULL,
    PRIMARY KEY (node, lane)
);
INSERT INTO node_ids SELECT n, lane, 0, 0 FROM generate_series(0, 31) AS n, generate_series(0, 2) AS lane;

CREATE TABLE accounts (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    suspended_reason TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE servers (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    mode TEXT NOT NULL,
    suspended_reason TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (account_id, name)
);

-- Keys and secrets have at least 190 random bits, so a plain SHA-256 is a safe hash; rows are looked up by it.
CREATE TABLE credentials (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    server_id BIGINT NOT NULL REFERENCES servers (id),
    name TEXT NOT NULL,
    key_hash BYTEA NOT NULL UNIQUE,
    secret_hash BYTEA NOT NULL,
    scope TEXT NOT NULL,
    allow TEXT NOT NULL,
    hold BIGINT NOT NULL,
    test BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    replaced_by BIGINT,
    last_used_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX credentials_by_server ON credentials (server_id);

CREATE TABLE domains (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    server_id BIGINT NOT NULL REFERENCES servers (id),
    name TEXT NOT NULL,
    verified_at BIGINT,
    dkim_selector TEXT NOT NULL,
    dkim_private_key BYTEA NOT NULL,
    dkim_public_key BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (server_id, name)
);

-- Values shared by all messages of one send. A row never changes.
CREATE TABLE sends (
    server_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    credential_id BIGINT,
    message_id TEXT NOT NULL,
    mail_from TEXT NOT NULL,
    subject TEXT NOT NULL,
    tag TEXT,
    metadata TEXT NOT NULL,
    options TEXT NOT NULL,
    size BIGINT NOT NULL,
    direction TEXT NOT NULL,
    bounce BIGINT NOT NULL,
    received_with_ssl BIGINT NOT NULL,
    test BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (server_id, id)
) PARTITION BY RANGE (id);

-- Compressed text of a send, in pieces of at most 512 KB. EXTERNAL: PostgreSQL does not compress it again. A separate
-- table, so that updates of other rows do not copy it.
CREATE TABLE bodies (
    server_id BIGINT NOT NULL,
    send_id BIGINT NOT NULL,
    piece BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (server_id, send_id, piece)
) PARTITION BY RANGE (send_id);
ALTER TABLE bodies ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE messages (
    server_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    send_id BIGINT NOT NULL,
    token TEXT NOT NULL,
    rcpt_to TEXT NOT NULL,
    status TEXT NOT NULL,
    hold_expiry BIGINT,
    bounce_for_id BIGINT NOT NULL,
    last_delivery_at BIGINT,
    last_seq BIGINT NOT NULL,
    PRIMARY KEY (server_id, id)
) PARTITION BY RANGE (id);

CREATE TABLE queue (
    server_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    domain TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    expires_at BIGINT,
    attempts BIGINT NOT NULL,
    claimed_node BIGINT,
    claimed_epoch BIGINT,
    PRIMARY KEY (server_id, message_id)
);
CREATE INDEX queue_by_due ON queue (due_at) WHERE claimed_node IS NULL;
CREATE INDEX queue_by_claim ON queue (claimed_node) WHERE claimed_node IS NOT NULL;

CREATE TABLE deliveries (
    server_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    status TEXT NOT NULL,
    details TEXT NOT NULL,
    output TEXT NOT NULL,
    sent_with_ssl BIGINT NOT NULL,
    log_id TEXT NOT NULL,
    duration_us BIGINT,
    mx TEXT,
    remote_ip TEXT,
    source_ip TEXT,
    tls TEXT,
    code BIGINT,
    enhanced_code TEXT,
    bounce_class TEXT,
    next_attempt_at BIGINT,
    PRIMARY KEY (server_id, message_id, id)
) PARTITION BY RANGE (message_id);

CREATE TABLE events (
    server_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT NOT NULL,
    at BIGINT NOT NULL,
    test BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (server_id, id)
) PARTITION BY RANGE (id);
CREATE INDEX events_by_message ON events (server_id, message_id, seq);

CREATE TABLE idempotency_keys (
    server_id BIGINT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BYTEA NOT NULL,
    answer TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (server_id, key)
);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
