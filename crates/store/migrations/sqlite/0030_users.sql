-- Users of the portal. `email` is in lower case; a user without `password_hash` signs in by a link. Seeds of authenticator
-- apps are encrypted. `totp_step`: time step of the last accepted code; no code is accepted twice.
CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    email TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    operator INTEGER NOT NULL,
    password_hash TEXT,
    password_changed_at INTEGER,
    totp_seed BLOB,
    totp_pending BLOB,
    totp_step INTEGER NOT NULL DEFAULT 0,
    last_sign_in_at INTEGER,
    version INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX users_by_account ON users (account_id, id);

-- Recovery codes for users who lost their authenticator app, stored hashed; each works once.
CREATE TABLE user_recovery_codes (
    user_id INTEGER NOT NULL REFERENCES users (id),
    code_hash BLOB NOT NULL,
    PRIMARY KEY (user_id, code_hash)
) WITHOUT ROWID;

-- Addresses from which a user has signed in: failed attempts from other addresses do not block the user there.
CREATE TABLE user_addresses (
    user_id INTEGER NOT NULL REFERENCES users (id),
    address TEXT NOT NULL,
    last_sign_in_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, address)
) WITHOUT ROWID;

CREATE TABLE user_sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users (id),
    token_hash BLOB NOT NULL UNIQUE,
    address TEXT,
    user_agent TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX user_sessions_by_user ON user_sessions (user_id, id);
CREATE INDEX user_sessions_by_end ON user_sessions (expires_at);

-- Tokens that work once; `kind`: password_reset, second_factor, sign_in, set_up (which has no user yet).
CREATE TABLE user_tokens (
    token_hash BLOB PRIMARY KEY,
    kind TEXT NOT NULL,
    user_id INTEGER REFERENCES users (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX user_tokens_by_user ON user_tokens (user_id, kind);
CREATE INDEX user_tokens_by_end ON user_tokens (expires_at);

CREATE TABLE invitations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    operator INTEGER NOT NULL,
    token_hash BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    UNIQUE (account_id, email)
);
CREATE INDEX invitations_by_end ON invitations (expires_at);

-- Attempts to sign in, counted by a hash of the address, of the user, and of both.
CREATE TABLE sign_in_attempts (
    key BLOB PRIMARY KEY,
    since INTEGER NOT NULL,
    count INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sign_in_attempts_by_age ON sign_in_attempts (since);
