-- The send/batch call that created a send.
ALTER TABLE sends ADD COLUMN batch_id INTEGER;
CREATE INDEX sends_by_batch ON sends (server_id, batch_id) WHERE batch_id IS NOT NULL;
-- Send time set by send/reschedule; the row of the send keeps the original time.
ALTER TABLE messages ADD COLUMN send_at INTEGER;
-- Scheduled messages of a server, for send/cancel and send/reschedule by tag or batch.
CREATE INDEX queue_scheduled_by_server ON queue (server_id, message_id) WHERE scheduled > 0;
