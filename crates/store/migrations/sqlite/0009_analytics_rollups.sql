-- Counters by hour and for single dimensions; recipient domains with all days of a block in one row. All counters are
-- rebuilt from the events. Counts of removed events are lost, which is acceptable: no version with counters was released.
DELETE FROM counter_marks;
DROP TABLE counters;
DROP TABLE recipient_domain_days;
DROP TABLE counter_dimensions;

-- `grain`: 0 a minute, 1 a quarter of an hour, 2 a day, 3 an hour (UTC). `shape`: see below; for the total, `shape` and
-- `dimensions` are 0. `at`: start of the span, in seconds. With this key, a batch of events or a chart touches few pages.
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

-- Sets of dimensions for which a server has counters, numbered from 1. `shape` has a bit for each dimension of the
-- breakdown: 1 domain, 2 tag, 4 provider, 8 template, 16 pool, 32 credential; the other dimensions are empty or 0.
-- `last_day` (seconds since 1970): the last day on which a set was counted.
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

-- `block`: start of a block of 32 days (seconds since 1970); `days`: the counts of each day.
CREATE TABLE recipient_domains (
    server_id INTEGER NOT NULL,
    block INTEGER NOT NULL,
    domain TEXT NOT NULL,
    days BLOB NOT NULL,
    PRIMARY KEY (server_id, block, domain)
) WITHOUT ROWID;
