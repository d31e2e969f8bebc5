-- Retention of a server's mail in days, if shorter than that of the installation; NULL: that of the installation.
ALTER TABLE servers ADD COLUMN retention_bodies INTEGER;
ALTER TABLE servers ADD COLUMN retention_messages INTEGER;
