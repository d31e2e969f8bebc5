-- Outcomes per source, provider (`other`: receivers without rules of their own) and UTC day. The providers of existing
-- outcomes were not recorded.
ALTER TABLE source_days ADD COLUMN provider TEXT NOT NULL DEFAULT 'other';
ALTER TABLE source_days ALTER COLUMN provider DROP DEFAULT;
ALTER TABLE source_days DROP CONSTRAINT source_days_pkey;
ALTER TABLE source_days ADD PRIMARY KEY (source_id, provider, day);
