-- The same index with comparisons instead of a list: for a list of more than two values, SQLite fills a temporary table at each
-- write of a message, which made these writes about three times as slow.
DROP INDEX messages_by_rare_status;
CREATE INDEX messages_by_rare_status ON messages (server_id, status, id)
    WHERE status = 'Held' OR status = 'HardFail' OR status = 'Bounced' OR status = 'HoldCancelled' OR status = 'Cancelled';
