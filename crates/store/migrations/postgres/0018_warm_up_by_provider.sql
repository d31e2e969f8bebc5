-- Outcomes per source, group of receivers (`other` for those that have no rules of their own) and UTC day. Of earlier ones nobody
-- wrote down where they went.
ALTER TABLE source_days ADD COLUMN provider TEXT NOT NULL DEFAULT 'other';
ALTER TABLE source_days ALTER COLUMN provider DROP DEFAULT;
ALTER TABLE source_days DROP CONSTRAINT source_days_pkey;
ALTER TABLE source_days ADD PRIMARY KEY (source_id, provider, day);
