-- Counters of events. Counts and latencies are small encoded sets (src/analytics/) that only the code can add.

-- The last event of each server that was counted; written in the same transaction as the counters.
CREATE TABLE counter_marks (
    server_id INTEGER PRIMARY KEY,
    xact INTEGER NOT NULL,
    event_id INTEGER NOT NULL
);

-- Sets of dimensions for which a server has counters, numbered from 1. `last_day` (seconds since 1970): the last day on
-- which a set was counted.
CREATE TABLE counter_dimensions (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    domain TEXT NOT NULL,
    tag TEXT NOT NULL,
    provider TEXT NOT NULL,
    template TEXT NOT NULL,
    pool_id INTEGER NOT NULL,
    credential_id INTEGER NOT NULL,
    last_day INTEGER NOT NULL,
    PRIMARY KEY (server_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX counter_dimensions_by_value
    ON counter_dimensions (server_id, domain, tag, provider, template, pool_id, credential_id);

-- `grain` 0 is a minute, 1 a quarter of an hour, 2 a day (UTC); `dimensions` 0 is the total; `at` is in seconds.
CREATE TABLE counters (
    server_id INTEGER NOT NULL,
    grain INTEGER NOT NULL,
    dimensions INTEGER NOT NULL,
    at INTEGER NOT NULL,
    counts BLOB NOT NULL,
    first_attempt BLOB NOT NULL,
    sent BLOB NOT NULL,
    PRIMARY KEY (server_id, grain, dimensions, at)
) WITHOUT ROWID;

CREATE TABLE recipient_domain_days (
    server_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    domain TEXT NOT NULL,
    counts BLOB NOT NULL,
    PRIMARY KEY (server_id, day, domain)
) WITHOUT ROWID;

-- Provider of the mail servers of a recipient domain, as of the last delivery.
CREATE TABLE recipient_providers (
    domain TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;
