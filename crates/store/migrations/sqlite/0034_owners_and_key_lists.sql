-- Who suspended the server or set the gate: `account`, or NULL for the operator, whose action an account cannot undo.
ALTER TABLE servers ADD COLUMN suspended_by TEXT;
ALTER TABLE gates ADD COLUMN set_by TEXT;

-- Lists the keys of an account in the order of ids without reading each of its servers.
ALTER TABLE credentials ADD COLUMN account_id INTEGER NOT NULL DEFAULT 0;
UPDATE credentials SET account_id = (SELECT s.account_id FROM servers s WHERE s.id = credentials.server_id);
CREATE INDEX credentials_by_account ON credentials (account_id, id);

-- Credentials bound to addresses are few, and are read every few seconds.
CREATE INDEX credentials_by_address ON credentials (id) WHERE scope = 'address';
