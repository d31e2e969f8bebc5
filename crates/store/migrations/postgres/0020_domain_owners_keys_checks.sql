-- A domain belongs to one server, or to an account and all its servers. It is verified by DNS records or by the operator.
-- `records`: result of the last check (JSON). Each DKIM key has a row in `domain_keys`.
ALTER TABLE domains ALTER COLUMN server_id DROP NOT NULL;
ALTER TABLE domains ADD COLUMN account_id BIGINT REFERENCES accounts (id);
ALTER TABLE domains ADD COLUMN verified_by TEXT;
ALTER TABLE domains ADD COLUMN good_since BIGINT;
ALTER TABLE domains ADD COLUMN failing_since BIGINT;
ALTER TABLE domains ADD COLUMN check_begun_at BIGINT;
ALTER TABLE domains ADD COLUMN checked_at BIGINT;
ALTER TABLE domains ADD COLUMN next_check_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN records TEXT NOT NULL DEFAULT '[]';
ALTER TABLE domains ADD COLUMN return_path_since BIGINT;
ALTER TABLE domains ADD COLUMN track_alias_at BIGINT;
ALTER TABLE domains ADD COLUMN track_host_since BIGINT;
UPDATE domains SET account_id = (SELECT account_id FROM servers WHERE id = server_id),
                   verified_by = CASE WHEN verified_at IS NOT NULL THEN 'operator' END;
ALTER TABLE domains ALTER COLUMN account_id SET NOT NULL;

-- `state`: pending (its DNS record is missing), active (signs) or retiring (the record must stay for a week). Rows of removed
-- keys are deleted. A key whose record does not exist in the DNS (`fails_since`) does not sign.
CREATE TABLE domain_keys (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id BIGINT NOT NULL REFERENCES domains (id),
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    private_key BYTEA NOT NULL,
    public_key BYTEA NOT NULL,
    state TEXT NOT NULL,
    state_since BIGINT NOT NULL,
    fails_since BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (domain_id, selector)
);

INSERT INTO domain_keys (domain_id, selector, algorithm, private_key, public_key, state, state_since, created_at)
SELECT id, dkim_selector, 'rsa', dkim_private_key, dkim_public_key, 'active', created_at, created_at FROM domains;
INSERT INTO domain_keys (domain_id, selector, algorithm, private_key, public_key, state, state_since, created_at)
SELECT id, dkim_ed25519_selector, 'ed25519', dkim_ed25519_private_key, dkim_ed25519_public_key, 'active', created_at, created_at
FROM domains WHERE dkim_ed25519_selector IS NOT NULL;
ALTER TABLE domains DROP COLUMN dkim_selector, DROP COLUMN dkim_private_key, DROP COLUMN dkim_public_key,
    DROP COLUMN dkim_ed25519_selector, DROP COLUMN dkim_ed25519_private_key, DROP COLUMN dkim_ed25519_public_key;
ALTER TABLE domains ALTER COLUMN next_check_at DROP DEFAULT, ALTER COLUMN records DROP DEFAULT;
CREATE UNIQUE INDEX domains_of_account ON domains (account_id, name) WHERE server_id IS NULL;
CREATE INDEX domains_by_account ON domains (account_id, id);
CREATE INDEX domains_by_name ON domains (name);
CREATE INDEX domains_by_next_check ON domains (next_check_at);
CREATE INDEX domains_by_track_alias ON domains (name) WHERE track_alias_at IS NOT NULL;
