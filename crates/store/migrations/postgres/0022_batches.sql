-- The call of send/batch that a send came with.
ALTER TABLE sends ADD COLUMN batch_id BIGINT;
CREATE INDEX sends_by_batch ON sends (server_id, batch_id) WHERE batch_id IS NOT NULL;
-- The time that send/reschedule gave a message; its send keeps the one it was accepted with.
ALTER TABLE messages ADD COLUMN send_at BIGINT;
-- Scheduled messages of a server, for send/cancel and send/reschedule by tag or batch.
CREATE INDEX queue_scheduled_by_server ON queue (server_id, message_id) WHERE scheduled > 0;
