-- 1: waits for the time its sender chose, and counts against the server's hourly limit when that comes; 2: likewise, without
-- counting; 0: everything else. Only entries with 0 are claimed.
ALTER TABLE queue ADD COLUMN scheduled BIGINT NOT NULL DEFAULT 0;
-- They were counted when they were accepted.
UPDATE queue SET scheduled = 2 FROM messages m WHERE m.server_id = queue.server_id AND m.id = queue.message_id
    AND m.status = 'Scheduled' AND claimed_node IS NULL;
DROP INDEX queue_by_due;
CREATE INDEX queue_by_due ON queue (due_at, message_id) WHERE claimed_node IS NULL AND scheduled = 0;
CREATE INDEX queue_scheduled ON queue (due_at, message_id) WHERE scheduled > 0;
-- Expiry is recorded on time whatever keeps a message back.
CREATE INDEX queue_by_expiry ON queue (expires_at, message_id) WHERE expires_at IS NOT NULL;
