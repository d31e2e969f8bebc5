-- How many days a server's mail is kept, where that is shorter than the installation's; NULL: as the installation's.
ALTER TABLE servers ADD COLUMN retention_bodies INTEGER;
ALTER TABLE servers ADD COLUMN retention_messages INTEGER;
