-- User names, in lower case, for SMTP programs that require one like an e-mail address; the password is the credential's secret.
-- When a credential is rotated, its successor gets the name; when it is revoked, the name becomes free.
CREATE TABLE logins (
    login TEXT PRIMARY KEY,
    credential_id INTEGER NOT NULL UNIQUE REFERENCES credentials (id)
);
-- A replaced credential stays valid for a while, with the same login.
CREATE INDEX credentials_by_successor ON credentials (replaced_by) WHERE replaced_by IS NOT NULL;
