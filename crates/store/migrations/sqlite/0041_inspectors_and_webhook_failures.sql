-- Request inspectors, at most one for each server: a URL that accepts any request until `expires_at`. The token in the URL is known by
-- its hash; `token` is the sealed token, for the page that shows the URL. `count` is the number of requests received so far.
-- `changed` counts arrivals and clearings, so that open pages notice those of other nodes. It begins at the time of opening in µs, so
-- that an inspector that replaces another does not repeat its numbers.
CREATE TABLE inspectors (
    server_id INTEGER PRIMARY KEY REFERENCES servers (id),
    account_id INTEGER NOT NULL,
    token_hash BLOB NOT NULL UNIQUE,
    token BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX inspectors_by_end ON inspectors (expires_at);

-- The newest requests to an inspector. `headers` is a JSON list of names and values; `bytes` is the length of query, headers and
-- body, which is the last column, so that the lengths can be read without it.
CREATE TABLE inspector_requests (
    server_id INTEGER NOT NULL REFERENCES inspectors (server_id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    method TEXT NOT NULL,
    status INTEGER NOT NULL,
    is_cut INTEGER NOT NULL,
    query TEXT NOT NULL,
    headers TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (server_id, number)
);

-- Start of the last failed attempt: a success that began earlier but is recorded later must not hide the failure.
ALTER TABLE webhooks ADD COLUMN last_failure_at INTEGER;
UPDATE webhooks SET last_failure_at = failing_since;

-- For searches of scheduled messages, newest first: by the primary key, a search would read all queued messages.
CREATE INDEX queue_scheduled_by_server ON queue (server_id, message_id) WHERE scheduled > 0;
