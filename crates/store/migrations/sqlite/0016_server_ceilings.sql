-- Ceilings that the operator sets on the values that a server's own key may choose; NULL: no ceiling. The columns without
-- `_ceiling` hold the values in force, which never exceed the ceilings.
ALTER TABLE servers ADD COLUMN mode_ceiling TEXT;
ALTER TABLE servers ADD COLUMN send_rate_ceiling TEXT;
ALTER TABLE servers ADD COLUMN hourly_limit_ceiling INTEGER;
ALTER TABLE servers ADD COLUMN retention_bodies_ceiling INTEGER;
ALTER TABLE servers ADD COLUMN retention_messages_ceiling INTEGER;

-- It was not recorded who set the existing limits. They become ceilings, so that the upgrade lifts no limit of an operator.
UPDATE servers SET send_rate_ceiling = send_rate, hourly_limit_ceiling = hourly_limit,
    mode_ceiling = CASE mode WHEN 'development' THEN mode END;
