-- Webhooks, the event feed and tracking.

-- Events are ordered by transaction, then id. An event is published once all transactions up to its own have ended, so that
-- no event is inserted before it later.
ALTER TABLE events ADD COLUMN xact BIGINT NOT NULL DEFAULT 0;
ALTER TABLE events ALTER COLUMN xact SET DEFAULT (pg_current_xact_id()::text::bigint);
CREATE INDEX events_by_xact ON events (server_id, xact, id);

-- Domain of the From header, by which analytics are grouped.
ALTER TABLE sends ADD COLUMN from_domain TEXT NOT NULL DEFAULT '';
-- Bits: 1 opened by a human, 2 by a bot; 4 clicked by a human, 8 by a bot; 16 unsubscribed.
ALTER TABLE messages ADD COLUMN marks BIGINT NOT NULL DEFAULT 0;

ALTER TABLE servers ADD COLUMN track_opens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE servers ADD COLUMN track_clicks BIGINT NOT NULL DEFAULT 0;
ALTER TABLE servers ADD COLUMN track_excluded_hosts TEXT NOT NULL DEFAULT '[]';
-- NULL: the setting of the server.
ALTER TABLE domains ADD COLUMN track_opens BIGINT;
ALTER TABLE domains ADD COLUMN track_clicks BIGINT;
ALTER TABLE domains ADD COLUMN track_host TEXT;

-- `wants`: the subscribed event kinds, one bit each.
CREATE TABLE webhooks (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    server_id BIGINT NOT NULL REFERENCES servers (id),
    url TEXT NOT NULL,
    wants BIGINT NOT NULL,
    format TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    disabled_reason TEXT,
    secret TEXT NOT NULL,
    previous_secret TEXT,
    previous_until BIGINT,
    failing_since BIGINT,
    last_success_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX webhooks_by_server ON webhooks (server_id);

-- Outbox: events not yet delivered to a webhook, written in the transaction of the event.
CREATE TABLE webhook_queue (
    server_id BIGINT NOT NULL,
    webhook_id BIGINT NOT NULL,
    event_id BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_until BIGINT,
    PRIMARY KEY (server_id, webhook_id, event_id)
);
CREATE INDEX webhook_queue_by_due ON webhook_queue (server_id, webhook_id, due_at, event_id);

-- Attempts to deliver an event to a webhook, with their results. `number` counts the attempts for an event from 1.
CREATE TABLE webhook_attempts (
    server_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    webhook_id BIGINT NOT NULL,
    event_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    at BIGINT NOT NULL,
    number BIGINT NOT NULL,
    url TEXT NOT NULL,
    status BIGINT,
    answer TEXT NOT NULL,
    error_class TEXT,
    error TEXT,
    connect_us BIGINT,
    duration_us BIGINT NOT NULL,
    next_attempt_at BIGINT,
    PRIMARY KEY (server_id, id)
) PARTITION BY RANGE (id);
CREATE INDEX webhook_attempts_by_webhook ON webhook_attempts (server_id, webhook_id, id);
CREATE INDEX webhook_attempts_by_event ON webhook_attempts (server_id, event_id);
