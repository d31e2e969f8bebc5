-- `result_begun_at`: when the check began whose result is shown; one that began earlier and ends later changes nothing.
-- `*_fails_since`, `*_fails`: a name that was good is used until it has failed for a while and in several checks.
-- `untold`: events of changes that a process without ids for events made (JSON); the next node writes them.
ALTER TABLE domains ADD COLUMN result_begun_at INTEGER;
ALTER TABLE domains ADD COLUMN return_path_fails_since INTEGER;
ALTER TABLE domains ADD COLUMN return_path_fails INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN track_host_fails_since INTEGER;
ALTER TABLE domains ADD COLUMN track_host_fails INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN untold TEXT;
CREATE INDEX domains_untold ON domains (id) WHERE untold IS NOT NULL;

-- Hosts of links in mail of domains that are gone.
CREATE TABLE former_tracking_hosts (
    account_id INTEGER NOT NULL,
    host TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (account_id, host)
) WITHOUT ROWID;

-- Domains of before 0020 were all due at once: spread their first checks over six hours.
UPDATE domains SET next_check_at = {now} + id * 7919 % 21600 * 1000000
WHERE next_check_at = 0;
