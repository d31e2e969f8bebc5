-- What was found out about receivers, by source address ("0.0.0.0": the machine's choice) and site: messages a minute and
-- connections that they seem to take, and how long their greylisting lasts. NULL: nothing is known.
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
