-- Accounts can choose their name and must not learn the names of others, so names are no longer unique. Only names that the
-- operator sets are checked for uniqueness, by the code. The table is recreated while foreign keys refer to it, so they are
-- checked at the end.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE accounts_before AS SELECT * FROM accounts;
-- Ids of deleted accounts must not be used again.
CREATE TABLE accounts_sequence AS SELECT seq FROM sqlite_sequence WHERE name = 'accounts';
DROP TABLE accounts;
CREATE TABLE accounts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    suspended_reason TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,
    delete_at INTEGER,
    hourly_limit INTEGER,
    daily_limit INTEGER,
    monthly_limit INTEGER,
    send_rate TEXT,
    servers_max INTEGER,
    domains_max INTEGER,
    webhooks_max INTEGER,
    users_max INTEGER,
    retention_bodies INTEGER,
    retention_messages INTEGER
);
INSERT INTO accounts (id, name, suspended_reason, created_at, updated_at, version, delete_at, hourly_limit, daily_limit,
                      monthly_limit, send_rate, servers_max, domains_max, webhooks_max, users_max, retention_bodies,
                      retention_messages)
SELECT id, name, suspended_reason, created_at, updated_at, version, delete_at, hourly_limit, daily_limit, monthly_limit, send_rate,
       servers_max, domains_max, webhooks_max, users_max, retention_bodies, retention_messages
FROM accounts_before;
DELETE FROM sqlite_sequence WHERE name = 'accounts';
INSERT INTO sqlite_sequence (name, seq) SELECT 'accounts', seq FROM accounts_sequence;
DROP TABLE accounts_before;
DROP TABLE accounts_sequence;
CREATE INDEX accounts_by_delete_at ON accounts (delete_at) WHERE delete_at IS NOT NULL;

-- Filtered lists in the order of ids. Lists of one server use credentials_by_server, which SQLite prefers to partial indexes.
CREATE INDEX accounts_by_name ON accounts (name, id);
CREATE INDEX accounts_deleted ON accounts (id) WHERE delete_at IS NOT NULL;
CREATE INDEX accounts_suspended ON accounts (id) WHERE suspended_reason IS NOT NULL;
CREATE INDEX servers_by_name ON servers (name, id);
CREATE INDEX servers_deleted ON servers (id) WHERE delete_at IS NOT NULL;
CREATE INDEX servers_deleted_by_account ON servers (account_id, id) WHERE delete_at IS NOT NULL;
CREATE INDEX servers_suspended ON servers (id) WHERE suspended_reason IS NOT NULL;
CREATE INDEX servers_suspended_by_account ON servers (account_id, id) WHERE suspended_reason IS NOT NULL;
CREATE INDEX credentials_revoked ON credentials (id) WHERE revoked_at IS NOT NULL;
CREATE INDEX credentials_revoked_by_account ON credentials (account_id, id) WHERE revoked_at IS NOT NULL;
CREATE INDEX credentials_unrevoked ON credentials (id) WHERE revoked_at IS NULL;
CREATE INDEX credentials_unrevoked_by_account ON credentials (account_id, id) WHERE revoked_at IS NULL;
