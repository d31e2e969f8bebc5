-- `tls_policy`: who demanded TLS, if anybody did. `dkim`: DNS names of the keys that signed the message.
ALTER TABLE deliveries ADD COLUMN tls_policy TEXT;
ALTER TABLE deliveries ADD COLUMN dkim TEXT;
