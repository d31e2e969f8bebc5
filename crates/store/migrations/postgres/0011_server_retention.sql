-- Retention of a server's mail in days, if shorter than that of the installation; NULL: that of the installation.
ALTER TABLE servers ADD COLUMN retention_bodies BIGINT;
ALTER TABLE servers ADD COLUMN retention_messages BIGINT;

-- Node that claimed the entry: when a node starts, it releases the claims of its previous run.
ALTER TABLE webhook_queue ADD COLUMN claimed_node BIGINT;
