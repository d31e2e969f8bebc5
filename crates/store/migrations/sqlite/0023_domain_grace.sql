-- `result_begun_at`: start of the check whose result is shown; results of checks that began earlier are ignored.
-- `*_fails_since`, `*_fails`: a name that was valid is used until it has failed for some time and in several checks.
-- `untold`: events (JSON) of changes by a process that has no event ids; the next node inserts them.
ALTER TABLE domains ADD COLUMN result_begun_at INTEGER;
ALTER TABLE domains ADD COLUMN return_path_fails_since INTEGER;
ALTER TABLE domains ADD COLUMN return_path_fails INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN track_host_fails_since INTEGER;
ALTER TABLE domains ADD COLUMN track_host_fails INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN untold TEXT;
CREATE INDEX domains_untold ON domains (id) WHERE untold IS NOT NULL;

-- Tracking hosts of removed domains: links in mail that was sent still use them.
CREATE TABLE former_tracking_hosts (
    account_id INTEGER NOT NULL,
    host TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (account_id, host)
) WITHOUT ROWID;

-- 0020 made all existing domains due at once: their first checks are spread over six hours.
UPDATE domains SET next_check_at = {now} + id * 7919 % 21600 * 1000000
WHERE next_check_at = 0;
