-- How many things an account has, kept by whatever adds or removes one, so that nobody counts thousands of rows.
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

-- The pools that an account's servers send from, without a look at each server.
CREATE INDEX servers_by_account_pool ON servers (account_id, pool_id) WHERE pool_id IS NOT NULL;

-- Every filter of the audit log finds its entries in the order of their time.
CREATE INDEX audit_by_time ON audit (account_id, at, seq);
CREATE INDEX audit_by_operation ON audit (account_id, operation, at, seq);
CREATE INDEX audit_by_subject ON audit (account_id, subject, at, seq);
CREATE INDEX audit_by_subject_id ON audit (account_id, subject_id, at, seq);
CREATE INDEX audit_by_actor ON audit (account_id, actor, at, seq);

-- Counted up by every change, for callers that change only what they have seen.
ALTER TABLE sources ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
