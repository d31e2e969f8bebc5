-- Accounts can choose their name and must not learn the names of others, so names are no longer unique. Only names that the
-- operator sets are checked for uniqueness, by the code.
ALTER TABLE accounts DROP CONSTRAINT accounts_name_key;

-- Filtered lists in the order of ids.
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
CREATE INDEX credentials_revoked_by_server ON credentials (server_id, id) WHERE revoked_at IS NOT NULL;
CREATE INDEX credentials_unrevoked ON credentials (id) WHERE revoked_at IS NULL;
CREATE INDEX credentials_unrevoked_by_account ON credentials (account_id, id) WHERE revoked_at IS NULL;
CREATE INDEX credentials_unrevoked_by_server ON credentials (server_id, id) WHERE revoked_at IS NULL;
