-- The account that a pool is for; NULL for those of the operator. Account keys see their own.
ALTER TABLE pools ADD COLUMN account_id INTEGER;
CREATE INDEX pools_by_account ON pools (account_id) WHERE account_id IS NOT NULL;
CREATE INDEX servers_by_pool ON servers (pool_id) WHERE pool_id IS NOT NULL;
