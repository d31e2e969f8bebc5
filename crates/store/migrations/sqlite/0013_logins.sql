-- User names for SMTP programs that insist on one like an e-mail address; the password is the credential's secret. In lower
-- case. A rotated credential hands its name to its successor, a revoked one gives it up.
CREATE TABLE logins (
    login TEXT PRIMARY KEY,
    credential_id INTEGER NOT NULL UNIQUE REFERENCES credentials (id)
);
-- The one that a credential replaced is good for a while, with the same login.
CREATE INDEX credentials_by_successor ON credentials (replaced_by) WHERE replaced_by IS NOT NULL;
