-- Lists of suppressions, newest first, also for one reason; and expired suppressions, for their removal.

CREATE INDEX suppressions_by_time ON suppressions (server_id, created_at, address);
CREATE INDEX suppressions_by_reason ON suppressions (server_id, reason, created_at, address);
CREATE INDEX suppressions_by_expiry ON suppressions (expires_at) WHERE expires_at IS NOT NULL;
