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
    server_id INTEGER NOT NULL,
    grain INTEGER NOT NULL,
    shape INTEGER NOT NULL,
    at INTEGER NOT NULL,
    dimensions INTEGER NOT NULL,
    counts BLOB NOT NULL,
    first_attempt BLOB NOT NULL,
    sent BLOB NOT NULL,
    PRIMARY KEY (server_id, grain, shape, at, dimensions)
) WITHOUT ROWID;

-- The sets of dimensions that a server has counters for, numbered from 1. `shape` has a bit for each dimension that the
-- set tells apart: 1 domain, 2 tag, 4 provider, 8 template, 16 pool, 32 credential; the others are empty, or 0.
-- `last_day` (seconds since 1970) says when a set was counted last.
CREATE TABLE counter_dimensions (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    shape INTEGER NOT NULL,
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
    ON counter_dimensions (server_id, shape, domain, tag, provider, template, pool_id, credential_id);

-- `block` is when a block of 32 days begins (seconds since 1970); `days` has the counts of each of them.
CREATE TABLE recipient_domains (
    server_id INTEGER NOT NULL,
    block INTEGER NOT NULL,
    domain TEXT NOT NULL,
    days BLOB NOT NULL,
    PRIMARY KEY (server_id, block, domain)
) WITHOUT ROWID;
