-- A domain belongs to one server, or to an account and all its servers. It is verified by DNS records or by the operator.
-- `records`: result of the last check (JSON). Each DKIM key has a row in `domain_keys`.
DROP INDEX domains_by_track_host;
ALTER TABLE domains RENAME TO domains_before;
CREATE TABLE domains (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    server_id INTEGER REFERENCES servers (id),
    name TEXT NOT NULL,
    verified_by TEXT,
    verified_at INTEGER,
    good_since INTEGER,
    failing_since INTEGER,
    check_begun_at INTEGER,
    checked_at INTEGER,
    next_check_at INTEGER NOT NULL,
    records TEXT NOT NULL,
    return_path_since INTEGER,
    track_alias_at INTEGER,
    track_host_since INTEGER,
    track_opens INTEGER,
    track_clicks INTEGER,
    track_host TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (server_id, name)
);
INSERT INTO domains (id, account_id, server_id, name, verified_by, verified_at, next_check_at, records, track_opens,
                     track_clicks, track_host, created_at, updated_at)
SELECT d.id, s.account_id, d.server_id, d.name, CASE WHEN d.verified_at IS NOT NULL THEN 'operator' END, d.verified_at, 0, '[]',
       d.track_opens, d.track_clicks, d.track_host, d.created_at, d.updated_at
FROM domains_before d JOIN servers s ON s.id = d.server_id;

-- `state`: pending (its DNS record is missing), active (signs) or retiring (the record must stay for a week). Rows of removed
-- keys are deleted. A key whose record does not exist in the DNS (`fails_since`) does not sign.
CREATE TABLE domain_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    domain_id INTEGER NOT NULL REFERENCES domains (id),
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    private_key BLOB NOT NULL,
    public_key BLOB NOT NULL,
    state TEXT NOT NULL,
    state_since INTEGER NOT NULL,
    fails_since INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (domain_id, selector)
);

INSERT INTO domain_keys (domain_id, selector, algorithm, private_key, public_key, state, state_since, created_at)
SELECT id, dkim_selector, 'rsa', dkim_private_key, dkim_public_key, 'active', created_at, created_at FROM domains_before;
INSERT INTO domain_keys (domain_id, selector, algorithm, private_key, public_key, state, state_since, created_at)
SELECT id, dkim_ed25519_selector, 'ed25519', dkim_ed25519_private_key, dkim_ed25519_public_key, 'active', created_at, created_at
FROM domains_before WHERE dkim_ed25519_selector IS NOT NULL;
DROP TABLE domains_before;
CREATE INDEX domains_by_track_host ON domains (track_host) WHERE track_host IS NOT NULL;
CREATE UNIQUE INDEX domains_of_account ON domains (account_id, name) WHERE server_id IS NULL;
CREATE INDEX domains_by_account ON domains (account_id, id);
CREATE INDEX domains_by_name ON domains (name);
CREATE INDEX domains_by_next_check ON domains (next_check_at);
CREATE INDEX domains_by_track_alias ON domains (name) WHERE track_alias_at IS NOT NULL;
