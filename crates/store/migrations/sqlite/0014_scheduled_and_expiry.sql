-- 1: the entry waits for its send time and then counts against the server's hourly limit; 2: the same without counting;
-- 0: all others. Only entries with 0 are claimed.
ALTER TABLE queue ADD COLUMN scheduled INTEGER NOT NULL DEFAULT 0;
-- Messages that are scheduled already were counted when they were accepted.
UPDATE queue SET scheduled = 2 WHERE EXISTS (SELECT 1 FROM messages m
    WHERE m.server_id = queue.server_id AND m.id = queue.message_id AND m.status = 'Scheduled');
CREATE INDEX queue_scheduled ON queue (due_at, message_id) WHERE scheduled > 0;
-- Finds expired messages even if they cannot be claimed, so that their expiry is recorded on time.
CREATE INDEX queue_by_expiry ON queue (expires_at, message_id) WHERE expires_at IS NOT NULL;
