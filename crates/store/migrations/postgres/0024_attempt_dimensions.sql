-- New dimensions of attempts, with their bits in `shape`: 64 bounce class, 128 source address, 256 TLS version. Existing
-- counters have none of them.
ALTER TABLE counter_dimensions ADD COLUMN bounce_class TEXT NOT NULL DEFAULT '';
ALTER TABLE counter_dimensions ADD COLUMN source_ip TEXT NOT NULL DEFAULT '';
ALTER TABLE counter_dimensions ADD COLUMN tls_version TEXT NOT NULL DEFAULT '';
DROP INDEX counter_dimensions_by_value;
CREATE UNIQUE INDEX counter_dimensions_by_value ON counter_dimensions
    (server_id, shape, domain, tag, provider, template, pool_id, credential_id, bounce_class, source_ip, tls_version);
