-- The source address of the last attempt: a retry keeps it, so that a receiver which greylists by address knows it again.
ALTER TABLE queue ADD COLUMN source_id BIGINT;
