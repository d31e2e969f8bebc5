-- When a pool or one of its addresses was last changed.
ALTER TABLE pools ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
UPDATE pools SET updated_at = created_at;
ALTER TABLE sources ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
UPDATE sources SET updated_at = created_at;

-- No query uses it: due messages are read by queue_scheduled_by_server_due, single ones by the key.
DROP INDEX queue_scheduled_by_server;
