-- Ceilings of an account, which only the operator sets; NULL: no ceiling. The first three limit the messages of all its
-- servers together; rate and retention limit each server.
ALTER TABLE accounts ADD COLUMN hourly_limit BIGINT;
ALTER TABLE accounts ADD COLUMN daily_limit BIGINT;
ALTER TABLE accounts ADD COLUMN monthly_limit BIGINT;
ALTER TABLE accounts ADD COLUMN send_rate TEXT;
ALTER TABLE accounts ADD COLUMN servers_max BIGINT;
ALTER TABLE accounts ADD COLUMN domains_max BIGINT;
ALTER TABLE accounts ADD COLUMN webhooks_max BIGINT;
ALTER TABLE accounts ADD COLUMN users_max BIGINT;
ALTER TABLE accounts ADD COLUMN retention_bodies BIGINT;
ALTER TABLE accounts ADD COLUMN retention_messages BIGINT;

-- Ceilings of a server that its account set. The lower of these and the operator's ceilings applies.
ALTER TABLE servers ADD COLUMN account_mode_ceiling TEXT;
ALTER TABLE servers ADD COLUMN account_send_rate_ceiling TEXT;
ALTER TABLE servers ADD COLUMN account_hourly_limit_ceiling BIGINT;
ALTER TABLE servers ADD COLUMN account_retention_bodies_ceiling BIGINT;
ALTER TABLE servers ADD COLUMN account_retention_messages_ceiling BIGINT;

-- Messages of an account in the current hour (`period` 1), day (2) and month (3), numbered from 1970; only for periods that
-- have a limit.
CREATE TABLE account_periods (
    account_id BIGINT NOT NULL,
    period BIGINT NOT NULL,
    number BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    PRIMARY KEY (account_id, period, number)
);

-- Events about ceilings that are not yet written for all servers of an account; servers up to `after_server` have theirs.
CREATE TABLE account_notices (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    at BIGINT NOT NULL,
    after_server BIGINT NOT NULL DEFAULT 0
);
