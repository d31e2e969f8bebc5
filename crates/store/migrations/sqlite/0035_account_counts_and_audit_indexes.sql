-- Numbers of servers, domains, users and webhooks of an account, updated whenever one is added or removed: counting the rows
-- would be slow.
CREATE TABLE account_counts (
    account_id INTEGER NOT NULL,
    thing TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (account_id, thing)
) WITHOUT ROWID;
INSERT INTO account_counts SELECT account_id, 'servers', count(*) FROM servers GROUP BY account_id;
INSERT INTO account_counts SELECT account_id, 'domains', count(*) FROM domains GROUP BY account_id;
INSERT INTO account_counts SELECT account_id, 'users', count(*) FROM users GROUP BY account_id;
INSERT INTO account_counts SELECT s.account_id, 'webhooks', count(*) FROM webhooks w JOIN servers s ON s.id = w.server_id
    GROUP BY s.account_id;

-- Finds the pools of an account's servers without reading each server.
CREATE INDEX servers_by_account_pool ON servers (account_id, pool_id) WHERE pool_id IS NOT NULL;

-- For each filter of the audit log, an index in the order of time.
CREATE INDEX audit_by_time ON audit (account_id, at, seq);
CREATE INDEX audit_by_operation ON audit (account_id, operation, at, seq);
CREATE INDEX audit_by_subject ON audit (account_id, subject, at, seq);
CREATE INDEX audit_by_subject_id ON audit (account_id, subject_id, at, seq);
CREATE INDEX audit_by_actor ON audit (account_id, actor, at, seq);

-- Incremented by every change; a caller can refuse to overwrite a change that it has not seen.
ALTER TABLE sources ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
