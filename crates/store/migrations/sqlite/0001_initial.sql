-- The first schema. Times are microseconds since 1970 UTC, flags are 0/1, structured values are JSON text.
-- Keys of hot tables begin with the server, as on PostgreSQL, except in `bodies` (see there).

CREATE TABLE settings (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- One row, because SQLite has one node. `last_id` is the highest id handed out; every commit updates it.
CREATE TABLE nodes (
    node INTEGER PRIMARY KEY,
    last_id INTEGER NOT NULL
);
INSERT INTO nodes (node, last_id) VALUES (0, 0);

CREATE TABLE accounts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    suspended_reason TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE TABLE servers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    mode TEXT NOT NULL,
    suspended_reason TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (account_id, name)
);

-- Keys and secrets have at least 190 random bits, so a plain SHA-256 is a safe hash; rows are looked up by it.
CREATE TABLE credentials (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    server_id INTEGER NOT NULL REFERENCES servers (id),
    name TEXT NOT NULL,
    key_hash BLOB NOT NULL UNIQUE,
    secret_hash BLOB NOT NULL,
    scope TEXT NOT NULL,
    allow TEXT NOT NULL,
    hold INTEGER NOT NULL,
    test INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    replaced_by INTEGER,
    last_used_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX credentials_by_server ON credentials (server_id);

CREATE TABLE domains (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    server_id INTEGER NOT NULL REFERENCES servers (id),
    name TEXT NOT NULL,
    verified_at INTEGER,
    dkim_selector TEXT NOT NULL,
    dkim_private_key BLOB NOT NULL,
    dkim_public_key BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (server_id, name)
);

-- Values shared by all messages of one send. A row never changes.
CREATE TABLE sends (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    credential_id INTEGER,
    message_id TEXT NOT NULL,
    mail_from TEXT NOT NULL,
    subject TEXT NOT NULL,
    tag TEXT,
    metadata TEXT NOT NULL,
    options TEXT NOT NULL,
    size INTEGER NOT NULL,
    direction TEXT NOT NULL,
    bounce INTEGER NOT NULL,
    received_with_ssl INTEGER NOT NULL,
    test INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (server_id, id)
) WITHOUT ROWID;

-- Compressed text of a send; NULL if it is in a separate file. Send ids are unique across servers, and a body is read
-- only through the row of its send, so the key needs no server. A rowid table packs small bodies into shared pages;
-- a WITHOUT ROWID table would give each one an overflow page.
CREATE TABLE bodies (
    send_id INTEGER PRIMARY KEY,
    data BLOB
);

CREATE TABLE messages (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    send_id INTEGER NOT NULL,
    token TEXT NOT NULL,
    rcpt_to TEXT NOT NULL,
    status TEXT NOT NULL,
    hold_expiry INTEGER,
    bounce_for_id INTEGER NOT NULL,
    last_delivery_at INTEGER,
    last_seq INTEGER NOT NULL,
    PRIMARY KEY (server_id, id)
) WITHOUT ROWID;

-- Claims are kept in memory: only one process uses the store.
CREATE TABLE queue (
    server_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    domain TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    expires_at INTEGER,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (server_id, message_id)
) WITHOUT ROWID;
CREATE INDEX queue_by_due ON queue (due_at);

CREATE TABLE deliveries (
    server_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL,
    details TEXT NOT NULL,
    output TEXT NOT NULL,
    sent_with_ssl INTEGER NOT NULL,
    log_id TEXT NOT NULL,
    duration_us INTEGER,
    mx TEXT,
    remote_ip TEXT,
    source_ip TEXT,
    tls TEXT,
    code INTEGER,
    enhanced_code TEXT,
    bounce_class TEXT,
    next_attempt_at INTEGER,
    PRIMARY KEY (server_id, message_id, id)
) WITHOUT ROWID;

CREATE TABLE events (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    test INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (server_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX events_by_message ON events (server_id, message_id, seq);

CREATE TABLE idempotency_keys (
    server_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    answer TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (server_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
