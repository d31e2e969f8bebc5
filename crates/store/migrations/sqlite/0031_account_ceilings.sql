-- Ceilings of an account, which only the operator sets; NULL: no ceiling. The first three limit the messages of all its
-- servers together; rate and retention limit each server.
ALTER TABLE accounts ADD COLUMN hourly_limit INTEGER;
ALTER TABLE accounts ADD COLUMN daily_limit INTEGER;
ALTER TABLE accounts ADD COLUMN monthly_limit INTEGER;
ALTER TABLE accounts ADD COLUMN send_rate TEXT;
ALTER TABLE accounts ADD COLUMN servers_max INTEGER;
ALTER TABLE accounts ADD COLUMN domains_max INTEGER;
ALTER TABLE accounts ADD COLUMN webhooks_max INTEGER;
ALTER TABLE accounts ADD COLUMN users_max INTEGER;
ALTER TABLE accounts ADD COLUMN retention_bodies INTEGER;
ALTER TABLE accounts ADD COLUMN retention_messages INTEGER;

-- Ceilings of a server that its account set. The lower of these and the operator's ceilings applies.
ALTER TABLE servers ADD COLUMN account_mode_ceiling TEXT;
ALTER TABLE servers ADD COLUMN account_send_rate_ceiling TEXT;
ALTER TABLE servers ADD COLUMN account_hourly_limit_ceiling INTEGER;
ALTER TABLE servers ADD COLUMN account_retention_bodies_ceiling INTEGER;
ALTER TABLE servers ADD COLUMN account_retention_messages_ceiling INTEGER;

-- Messages of an account in the current hour (`period` 1), day (2) and month (3), numbered from 1970; only for periods that
-- have a limit.
CREATE TABLE account_periods (
    account_id INTEGER NOT NULL,
    period INTEGER NOT NULL,
    number INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (account_id, period, number)
) WITHOUT ROWID;

-- Events about ceilings that are not yet written for all servers of an account; servers up to `after_server` have theirs.
CREATE TABLE account_notices (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    at INTEGER NOT NULL,
    after_server INTEGER NOT NULL DEFAULT 0
);
