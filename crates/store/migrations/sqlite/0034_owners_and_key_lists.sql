-- Who suspended a server or set a gate: `account`; NULL is the operator, whose word an account does not undo.
ALTER TABLE servers ADD COLUMN suspended_by TEXT;
ALTER TABLE gates ADD COLUMN set_by TEXT;

-- The keys of an account in the order of their ids, without a look at each of its servers.
ALTER TABLE credentials ADD COLUMN account_id INTEGER NOT NULL DEFAULT 0;
UPDATE credentials SET account_id = (SELECT s.account_id FROM servers s WHERE s.id = credentials.server_id);
CREATE INDEX credentials_by_account ON credentials (account_id, id);

-- The few that are bound to addresses are read every few seconds.
CREATE INDEX credentials_by_address ON credentials (id) WHERE scope = 'address';
