-- Counters by the hour, and for each dimension by itself; recipient domains with all days of a block in one row.
-- Everything is counted anew from the events. What had been counted of events that are not kept any more is lost: no
-- version with counters was released before.
DELETE FROM counter_marks;
DROP TABLE counters;
DROP TABLE recipient_domain_days;
DROP TABLE counter_dimensions;

-- `grain` 0 is a minute, 1 a quarter of an hour, 2 a day, 3 an hour (UTC); `shape` as below, 0 for the total, whose
-- `dimensions` are 0; `at` is in seconds. In this order a batch of events touches few pages, and so does a chart.
CREATE TABLE counters (
    server_id BIGINT NOT NULL,
    grain BIGINT NOT NULL,
    shape BIGINT NOT NULL,
    at BIGINT NOT NULL,
    dimensions BIGINT NOT NULL,
    counts BYTEA NOT NULL,
    first_attempt BYTEA NOT NULL,
    sent BYTEA NOT NULL,
    PRIMARY KEY (server_id, grain, shape, at, dimensions)
);

-- The sets of dimensions that a server has counters for, numbered from 1. `shape` has a bit for each dimension that the
-- set tells apart: 1 domain, 2 tag, 4 provider, 8 template, 16 pool, 32 credential; the others are empty, or 0.
-- `last_day` (seconds since 1970) says when a set was counted last.
CREATE TABLE counter_dimensions (
    server_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    shape BIGINT NOT NULL,
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
    ON counter_dimensions (server_id, shape, domain, tag, provider, template, pool_id, credential_id);

-- `block` is when a block of 32 days begins (seconds since 1970); `days` has the counts of each of them.
CREATE TABLE recipient_domains (
    server_id BIGINT NOT NULL,
    block BIGINT NOT NULL,
    domain TEXT NOT NULL,
    days BYTEA NOT NULL,
    PRIMARY KEY (server_id, block, domain)
);
