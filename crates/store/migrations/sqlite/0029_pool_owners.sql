-- Account that owns a pool; NULL: the operator. Account keys see only pools of their account.
ALTER TABLE pools ADD COLUMN account_id INTEGER;
CREATE INDEX pools_by_account ON pools (account_id) WHERE account_id IS NOT NULL;
CREATE INDEX servers_by_pool ON servers (pool_id) WHERE pool_id IS NOT NULL;
