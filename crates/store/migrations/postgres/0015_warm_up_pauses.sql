-- While a warm-up is paused, the days of its plan stand still. `warmup_days_paused` are those of pauses that are over.
ALTER TABLE sources ADD COLUMN warmup_paused_at BIGINT;
ALTER TABLE sources ADD COLUMN warmup_days_paused BIGINT NOT NULL DEFAULT 0;
-- Nobody wrote down when; the last day on which the address sent comes nearest.
UPDATE sources SET warmup_paused_at = coalesce(
        (SELECT max(d.day) * 86400000000 FROM source_days d WHERE d.source_id = sources.id AND d.sent > 0),
        warmup_started_at)
    WHERE warmup_paused_reason IS NOT NULL;

-- The day's counts when the warm-up was started or resumed: only what came after them can pause it.
ALTER TABLE source_days ADD COLUMN sent_before BIGINT NOT NULL DEFAULT 0;
ALTER TABLE source_days ADD COLUMN bounced_before BIGINT NOT NULL DEFAULT 0;
ALTER TABLE source_days ADD COLUMN complained_before BIGINT NOT NULL DEFAULT 0;
