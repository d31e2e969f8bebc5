-- API keys of accounts and, without an account, of the operator. Stored hashed, like those of servers.
CREATE TABLE account_keys (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id BIGINT REFERENCES accounts (id),
    name TEXT NOT NULL,
    key_hash BYTEA NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    allow TEXT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX account_keys_by_account ON account_keys (account_id, id);

-- `version` is incremented by every change; a caller can refuse to overwrite a change that it has not seen. A server or
-- account with `delete_at` is visible only to those who may restore it, until that time.
ALTER TABLE accounts ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE accounts ADD COLUMN delete_at BIGINT;
ALTER TABLE servers ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE servers ADD COLUMN delete_at BIGINT;
ALTER TABLE credentials ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
CREATE INDEX servers_by_account ON servers (account_id, id);
CREATE INDEX servers_by_delete_at ON servers (delete_at) WHERE delete_at IS NOT NULL;
CREATE INDEX accounts_by_delete_at ON accounts (delete_at) WHERE delete_at IS NOT NULL;

-- Audit log: one row for each change, written in the same transaction. Account 0 is the installation. `hash` covers the
-- row and the hash of the previous row; `audit_heads` holds the last one, so that a missing row is detected.
CREATE TABLE audit (
    account_id BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    actor_id BIGINT,
    address TEXT,
    operation TEXT NOT NULL,
    subject TEXT NOT NULL,
    subject_id BIGINT,
    before TEXT,
    after TEXT,
    hash BYTEA NOT NULL,
    PRIMARY KEY (account_id, seq)
);
CREATE TABLE audit_heads (
    account_id BIGINT PRIMARY KEY,
    seq BIGINT NOT NULL,
    hash BYTEA NOT NULL
);

-- Idempotency keys of calls that create something, for 24 hours.
CREATE TABLE creations (
    account_id BIGINT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BYTEA NOT NULL,
    subject_id BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, key)
);
CREATE INDEX creations_by_age ON creations (created_at);
