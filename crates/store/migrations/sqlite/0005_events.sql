-- Webhooks, the event feed and tracking. From this version on the writer assigns event ids, so that events are ordered by
-- commit.

-- Domain of the From header, by which analytics are grouped.
ALTER TABLE sends ADD COLUMN from_domain TEXT NOT NULL DEFAULT '';
-- Bits: 1 opened by a human, 2 by a bot; 4 clicked by a human, 8 by a bot; 16 unsubscribed.
ALTER TABLE messages ADD COLUMN marks INTEGER NOT NULL DEFAULT 0;

ALTER TABLE servers ADD COLUMN track_opens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE servers ADD COLUMN track_clicks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE servers ADD COLUMN track_excluded_hosts TEXT NOT NULL DEFAULT '[]';
-- NULL: the setting of the server.
ALTER TABLE domains ADD COLUMN track_opens INTEGER;
ALTER TABLE domains ADD COLUMN track_clicks INTEGER;
ALTER TABLE domains ADD COLUMN track_host TEXT;

-- `wants`: the subscribed event kinds, one bit each.
CREATE TABLE webhooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    server_id INTEGER NOT NULL REFERENCES servers (id),
    url TEXT NOT NULL,
    wants INTEGER NOT NULL,
    format TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    disabled_reason TEXT,
    secret TEXT NOT NULL,
    previous_secret TEXT,
    previous_until INTEGER,
    failing_since INTEGER,
    last_success_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX webhooks_by_server ON webhooks (server_id);

-- Outbox: events not yet delivered to a webhook, written in the transaction of the event.
CREATE TABLE webhook_queue (
    server_id INTEGER NOT NULL,
    webhook_id INTEGER NOT NULL,
    event_id INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (server_id, webhook_id, event_id)
) WITHOUT ROWID;
CREATE INDEX webhook_queue_by_due ON webhook_queue (server_id, webhook_id, due_at, event_id);

-- Attempts to deliver an event to a webhook, with their results. `number` counts the attempts for an event from 1.
CREATE TABLE webhook_attempts (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    webhook_id INTEGER NOT NULL,
    event_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    number INTEGER NOT NULL,
    url TEXT NOT NULL,
    status INTEGER,
    answer TEXT NOT NULL,
    error_class TEXT,
    error TEXT,
    connect_us INTEGER,
    duration_us INTEGER NOT NULL,
    next_attempt_at INTEGER,
    PRIMARY KEY (server_id, id)
) WITHOUT ROWID;
CREATE INDEX webhook_attempts_by_webhook ON webhook_attempts (server_id, webhook_id, id);
CREATE INDEX webhook_attempts_by_event ON webhook_attempts (server_id, event_id);
