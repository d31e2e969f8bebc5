-- Jobs that process many messages in steps. `request` is JSON. `position`: the next step begins before this message.
-- `problems` lists the first messages that failed. One node works on a job, until `claimed_until`.
CREATE TABLE jobs (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    position INTEGER NOT NULL,
    done INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    total INTEGER NOT NULL,
    problems TEXT NOT NULL,
    claimed_until INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (server_id, id)
);
CREATE INDEX jobs_running ON jobs (id) WHERE state = 'running';
CREATE INDEX jobs_by_age ON jobs (updated_at);
