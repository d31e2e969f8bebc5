-- How many days a server's mail is kept, where that is shorter than the installation's; NULL: as the installation's.
ALTER TABLE servers ADD COLUMN retention_bodies BIGINT;
ALTER TABLE servers ADD COLUMN retention_messages BIGINT;

-- Who claimed it: a node that starts gives back what it had when it ended.
ALTER TABLE webhook_queue ADD COLUMN claimed_node BIGINT;
