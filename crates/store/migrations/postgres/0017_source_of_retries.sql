-- Source address of the last attempt: retries use it again, because receivers that greylist remember the address.
ALTER TABLE queue ADD COLUMN source_id BIGINT;
