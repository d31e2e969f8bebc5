-- Time of the last change of a pool or of one of its addresses.
ALTER TABLE pools ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
UPDATE pools SET updated_at = created_at;
ALTER TABLE sources ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
UPDATE sources SET updated_at = created_at;

-- No query uses this index: due messages are read by queue_scheduled_by_server_due, single messages by the primary key.
DROP INDEX queue_scheduled_by_server;
