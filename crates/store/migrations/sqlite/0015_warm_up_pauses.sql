-- Paused days do not count as days of the warm-up plan. `warmup_days_paused`: total of the pauses that have ended.
ALTER TABLE sources ADD COLUMN warmup_paused_at INTEGER;
ALTER TABLE sources ADD COLUMN warmup_days_paused INTEGER NOT NULL DEFAULT 0;
-- The start of existing pauses was not recorded; the last day on which the address sent is the best estimate.
UPDATE sources SET warmup_paused_at = coalesce(
        (SELECT max(d.day) * 86400000000 FROM source_days d WHERE d.source_id = sources.id AND d.sent > 0),
        warmup_started_at)
    WHERE warmup_paused_reason IS NOT NULL;

-- Counts of the day at the time when the warm-up was started or resumed: only later outcomes can pause it.
ALTER TABLE source_days ADD COLUMN sent_before INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source_days ADD COLUMN bounced_before INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source_days ADD COLUMN complained_before INTEGER NOT NULL DEFAULT 0;
