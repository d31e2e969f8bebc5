-- Outcomes per source, provider (`other`: receivers without rules of their own) and UTC day.
CREATE TABLE source_provider_days (
    source_id INTEGER NOT NULL,
    provider TEXT NOT NULL,
    day INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    bounced INTEGER NOT NULL,
    complained INTEGER NOT NULL DEFAULT 0,
    sent_before INTEGER NOT NULL DEFAULT 0,
    bounced_before INTEGER NOT NULL DEFAULT 0,
    complained_before INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (source_id, provider, day)
) WITHOUT ROWID;
-- The providers of existing outcomes were not recorded.
INSERT INTO source_provider_days
    SELECT source_id, 'other', day, sent, bounced, complained, sent_before, bounced_before, complained_before FROM source_days;
DROP TABLE source_days;
ALTER TABLE source_provider_days RENAME TO source_days;
