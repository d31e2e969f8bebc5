-- Counters of events. Counts and latencies are small encoded sets (src/analytics/) that only the code can add.

-- The last event of each server that was counted; written in the same transaction as the counters.
CREATE TABLE counter_marks (
    server_id BIGINT PRIMARY KEY,
    xact BIGINT NOT NULL,
    event_id BIGINT NOT NULL
);

-- Sets of dimensions for which a server has counters, numbered from 1. `last_day` (seconds since 1970): the last day on
-- which a set was counted.
CREATE TABLE counter_dimensions (
    server_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    domain TEXT NOT NULL,
    tag TEXT NOT NULL,
    provider TEXT NOT NULL,
    template TEXT NOT NULL,
    pool_id BIGINT NOT NULL,
    credential_id BIGINT NOT NULL,
    last_day BIGINT NOT NULL,
    PRIMARY KEY (server_id, id)
);
CREATE UNIQUE INDEX counter_dimensions_by_value
    ON counter_dimensions (server_id, domain, tag, provider, template, pool_id, credential_id);

-- `grain` 0 is a minute, 1 a quarter of an hour, 2 a day (UTC); `dimensions` 0 is the total; `at` is in seconds.
CREATE TABLE counters (
    server_id BIGINT NOT NULL,
    grain BIGINT NOT NULL,
    dimensions BIGINT NOT NULL,
    at BIGINT NOT NULL,
    counts BYTEA NOT NULL,
    first_attempt BYTEA NOT NULL,
    sent BYTEA NOT NULL,
    PRIMARY KEY (server_id, grain, dimensions, at)
);

CREATE TABLE recipient_domain_days (
    server_id BIGINT NOT NULL,
    day BIGINT NOT NULL,
    domain TEXT NOT NULL,
    counts BYTEA NOT NULL,
    PRIMARY KEY (server_id, day, domain)
);

-- Provider of the mail servers of a recipient domain, as of the last delivery.
CREATE TABLE recipient_providers (
    domain TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);
