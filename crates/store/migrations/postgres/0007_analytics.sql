-- Events added up. Counts and latencies are small encoded sets (src/counting/), which only the code adds.

-- How far the events of a server are added up; written together with what they added.
CREATE TABLE counter_marks (
    server_id BIGINT PRIMARY KEY,
    xact BIGINT NOT NULL,
    event_id BIGINT NOT NULL
);

-- The sets of dimensions that a server has counters for, numbered from 1. `last_day` (seconds since 1970) says when a
-- set was counted last.
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

-- Whose mail servers a recipient domain has, as delivery found it last.
CREATE TABLE recipient_providers (
    domain TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);
