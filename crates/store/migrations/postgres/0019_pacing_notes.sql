-- Estimates of receivers' limits, by source address ("0.0.0.0": chosen by the operating system) and site: messages per
-- minute, connections, and duration of greylisting. NULL: unknown.
CREATE TABLE pacing_notes (
    source TEXT NOT NULL,
    site TEXT NOT NULL,
    per_minute BIGINT,
    connections BIGINT,
    greylist_secs BIGINT,
    reason TEXT NOT NULL,
    learned_at BIGINT NOT NULL,
    PRIMARY KEY (source, site)
);
CREATE INDEX pacing_notes_by_age ON pacing_notes (learned_at);
