-- `tls_policy`: the policy that required TLS, if any. `dkim`: DNS names of the keys that signed the message.
ALTER TABLE deliveries ADD COLUMN tls_policy TEXT;
ALTER TABLE deliveries ADD COLUMN dkim TEXT;
