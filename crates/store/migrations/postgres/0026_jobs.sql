-- Jobs that process many messages in steps. `request` is JSON. `position`: the next step begins before this message.
-- `problems` lists the first messages that failed. One node works on a job, until `claimed_until`.
CREATE TABLE jobs (
    server_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    position BIGINT NOT NULL,
    done BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    total BIGINT NOT NULL,
    problems TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (server_id, id)
);
CREATE INDEX jobs_running ON jobs (id) WHERE state = 'running';
CREATE INDEX jobs_by_age ON jobs (updated_at);
