-- The highest values that a server's own key may set, given by the operator; NULL: no ceiling. The columns without
-- `_ceiling` hold the values in force, which never exceed them.
ALTER TABLE servers ADD COLUMN mode_ceiling TEXT;
ALTER TABLE servers ADD COLUMN send_rate_ceiling TEXT;
ALTER TABLE servers ADD COLUMN hourly_limit_ceiling BIGINT;
ALTER TABLE servers ADD COLUMN retention_bodies_ceiling BIGINT;
ALTER TABLE servers ADD COLUMN retention_messages_ceiling BIGINT;

-- Nobody recorded who set the limits there are. They become ceilings, so that no upgrade lifts an operator's limit.
UPDATE servers SET send_rate_ceiling = send_rate, hourly_limit_ceiling = hourly_limit,
    mode_ceiling = CASE mode WHEN 'development' THEN mode END;
