CREATE TABLE account_counts (
    account_id INTEGER NOT NULL,
    thing TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (account_id, thing)
) WITHOUT ROWID;

CREATE TABLE account_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER REFERENCES accounts (id),
    name TEXT NOT NULL,
    key_hash BLOB NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    allow TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE INDEX account_keys_by_account ON account_keys (account_id, id);

CREATE TABLE account_notices (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    at INTEGER NOT NULL,
    after_server INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE account_periods (
    account_id INTEGER NOT NULL,
    period INTEGER NOT NULL,
    number INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (account_id, period, number)
) WITHOUT ROWID;

CREATE TRIGGER accounts_changed AFTER UPDATE OF suspended_reason, send_rate, delete_at ON accounts
    WHEN (OLD.suspended_reason, OLD.send_rate, OLD.delete_at)
         IS NOT (NEW.suspended_reason, NEW.send_rate, NEW.delete_at) BEGIN
    UPDATE setup_changes SET last = last + 1;
    UPDATE accounts SET changed_xact = (SELECT last FROM setup_changes) WHERE id = NEW.id;
END;

CREATE TABLE accounts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    suspended_reason TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,
    delete_at INTEGER,
    hourly_limit INTEGER,
    daily_limit INTEGER,
    monthly_limit INTEGER,
    send_rate TEXT,
    servers_max INTEGER,
    domains_max INTEGER,
    webhooks_max INTEGER,
    users_max INTEGER,
    retention_bodies INTEGER,
    retention_messages INTEGER
, changed_xact INTEGER NOT NULL DEFAULT 0);

CREATE INDEX accounts_by_change ON accounts (changed_xact);

CREATE INDEX accounts_by_delete_at ON accounts (delete_at) WHERE delete_at IS NOT NULL;

CREATE INDEX accounts_by_name ON accounts (name, id);

CREATE INDEX accounts_deleted ON accounts (id) WHERE delete_at IS NOT NULL;

CREATE INDEX accounts_suspended ON accounts (id) WHERE suspended_reason IS NOT NULL;

CREATE TABLE audit (
    account_id INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    actor_id INTEGER,
    address TEXT,
    operation TEXT NOT NULL,
    subject TEXT NOT NULL,
    subject_id INTEGER,
    before TEXT,
    after TEXT,
    hash BLOB NOT NULL,
    PRIMARY KEY (account_id, seq)
) WITHOUT ROWID;

CREATE INDEX audit_by_actor ON audit (account_id, actor, at, seq);

CREATE INDEX audit_by_actor_id ON audit (account_id,
    (CASE WHEN actor_id = 0 AND actor = 'user' AND subject = 'user' THEN subject_id ELSE actor_id END), at, seq);

CREATE INDEX audit_by_operation ON audit (account_id, operation, at, seq);

CREATE INDEX audit_by_subject ON audit (account_id, subject, at, seq);

CREATE INDEX audit_by_subject_id ON audit (account_id, subject_id, at, seq);

CREATE INDEX audit_by_time ON audit (account_id, at, seq);

CREATE TABLE audit_heads (
    account_id INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL
);

CREATE TABLE bodies (
    send_id INTEGER PRIMARY KEY,
    data BLOB
);

CREATE TABLE counter_dimensions (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    shape INTEGER NOT NULL,
    domain TEXT NOT NULL,
    tag TEXT NOT NULL,
    provider TEXT NOT NULL,
    template TEXT NOT NULL,
    pool_id INTEGER NOT NULL,
    credential_id INTEGER NOT NULL,
    last_day INTEGER NOT NULL, bounce_class TEXT NOT NULL DEFAULT '', source_ip TEXT NOT NULL DEFAULT '', tls_version TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (server_id, id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX counter_dimensions_by_value ON counter_dimensions
    (server_id, shape, domain, tag, provider, template, pool_id, credential_id, bounce_class, source_ip, tls_version);

CREATE TABLE counter_marks (
    server_id INTEGER PRIMARY KEY,
    xact INTEGER NOT NULL,
    event_id INTEGER NOT NULL
);

CREATE TABLE counters (
    server_id INTEGER NOT NULL,
    grain INTEGER NOT NULL,
    shape INTEGER NOT NULL,
    at INTEGER NOT NULL,
    dimensions INTEGER NOT NULL,
    counts BLOB NOT NULL,
    first_attempt BLOB NOT NULL,
    sent BLOB NOT NULL,
    PRIMARY KEY (server_id, grain, shape, at, dimensions)
) WITHOUT ROWID;

CREATE TABLE creations (
    account_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    subject_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, key)
) WITHOUT ROWID;

CREATE INDEX creations_by_age ON creations (created_at);

CREATE TABLE credentials (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    server_id INTEGER NOT NULL REFERENCES servers (id),
    name TEXT NOT NULL,
    key_hash BLOB NOT NULL UNIQUE,
    secret_hash BLOB NOT NULL,
    scope TEXT NOT NULL,
    allow TEXT NOT NULL,
    hold INTEGER NOT NULL,
    test INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    replaced_by INTEGER,
    last_used_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
, version INTEGER NOT NULL DEFAULT 1, account_id INTEGER NOT NULL DEFAULT 0);

CREATE INDEX credentials_by_account ON credentials (account_id, id);

CREATE INDEX credentials_by_account_name ON credentials (account_id, name, id);

CREATE INDEX credentials_by_address ON credentials (id) WHERE scope = 'address';

CREATE INDEX credentials_by_name ON credentials (name, id);

CREATE INDEX credentials_by_revocation ON credentials (revoked_at) WHERE revoked_at IS NOT NULL;

CREATE INDEX credentials_by_server ON credentials (server_id);

CREATE INDEX credentials_by_server_name ON credentials (server_id, name, id);

CREATE INDEX credentials_by_successor ON credentials (replaced_by) WHERE replaced_by IS NOT NULL;

CREATE INDEX credentials_revoked ON credentials (id) WHERE revoked_at IS NOT NULL;

CREATE INDEX credentials_revoked_by_account ON credentials (account_id, id) WHERE revoked_at IS NOT NULL;

CREATE INDEX credentials_unrevoked ON credentials (id) WHERE revoked_at IS NULL;

CREATE INDEX credentials_unrevoked_by_account ON credentials (account_id, id) WHERE revoked_at IS NULL;

CREATE TABLE deliveries (
    server_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL,
    details TEXT NOT NULL,
    output TEXT NOT NULL,
    sent_with_ssl INTEGER NOT NULL,
    log_id TEXT NOT NULL,
    duration_us INTEGER,
    mx TEXT,
    remote_ip TEXT,
    source_ip TEXT,
    tls TEXT,
    code INTEGER,
    enhanced_code TEXT,
    bounce_class TEXT,
    next_attempt_at INTEGER, possible_duplicate INTEGER NOT NULL DEFAULT 0, tls_policy TEXT, dkim TEXT,
    PRIMARY KEY (server_id, message_id, id)
) WITHOUT ROWID;

CREATE TABLE delivery_transcripts (
    server_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    delivery_id INTEGER NOT NULL,
    transcript TEXT NOT NULL,
    PRIMARY KEY (server_id, message_id, delivery_id)
);

CREATE TABLE domain_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    domain_id INTEGER NOT NULL REFERENCES domains (id),
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    private_key BLOB NOT NULL,
    public_key BLOB NOT NULL,
    state TEXT NOT NULL,
    state_since INTEGER NOT NULL,
    fails_since INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (domain_id, selector)
);

CREATE TABLE domain_links (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    domain_id INTEGER NOT NULL REFERENCES domains (id),
    token_hash BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

CREATE INDEX domain_links_by_domain ON domain_links (domain_id, id);

CREATE INDEX domain_links_by_end ON domain_links (expires_at);

CREATE TABLE domain_reports (
    domain TEXT NOT NULL,
    kind TEXT NOT NULL,
    organisation TEXT NOT NULL,
    report_id TEXT NOT NULL,
    begin_at INTEGER NOT NULL,
    end_at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    total INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    details TEXT NOT NULL,
    PRIMARY KEY (domain, kind, organisation, report_id)
) WITHOUT ROWID;

CREATE INDEX domain_reports_by_age ON domain_reports (received_at);

CREATE INDEX domain_reports_by_domain_age ON domain_reports (domain, received_at);

CREATE TABLE domains (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    server_id INTEGER REFERENCES servers (id),
    name TEXT NOT NULL,
    verified_by TEXT,
    verified_at INTEGER,
    good_since INTEGER,
    failing_since INTEGER,
    check_begun_at INTEGER,
    checked_at INTEGER,
    next_check_at INTEGER NOT NULL,
    records TEXT NOT NULL,
    return_path_since INTEGER,
    track_alias_at INTEGER,
    track_host_since INTEGER,
    track_opens INTEGER,
    track_clicks INTEGER,
    track_host TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, result_begun_at INTEGER, return_path_fails_since INTEGER, return_path_fails INTEGER NOT NULL DEFAULT 0, track_host_fails_since INTEGER, track_host_fails INTEGER NOT NULL DEFAULT 0, untold TEXT,
    UNIQUE (server_id, name)
);

CREATE INDEX domains_by_account ON domains (account_id, id);

CREATE INDEX domains_by_name ON domains (name);

CREATE INDEX domains_by_next_check ON domains (next_check_at);

CREATE INDEX domains_by_track_alias ON domains (name) WHERE track_alias_at IS NOT NULL;

CREATE INDEX domains_by_track_host ON domains (track_host) WHERE track_host IS NOT NULL;

CREATE UNIQUE INDEX domains_of_account ON domains (account_id, name) WHERE server_id IS NULL;

CREATE INDEX domains_untold ON domains (id) WHERE untold IS NOT NULL;

CREATE TABLE events (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    test INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (server_id, id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX events_by_message ON events (server_id, message_id, seq);

CREATE TABLE former_tracking_hosts (
    account_id INTEGER NOT NULL,
    host TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (account_id, host)
) WITHOUT ROWID;

CREATE TABLE gates (
    scope_kind TEXT NOT NULL,
    scope_key TEXT NOT NULL,
    automatic INTEGER NOT NULL,
    action TEXT NOT NULL,
    per_minute INTEGER,
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ends_at INTEGER, set_by TEXT,
    PRIMARY KEY (scope_kind, scope_key, automatic)
) WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    server_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    answer TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (server_id, key)
) WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

CREATE TABLE inspector_requests (
    server_id INTEGER NOT NULL REFERENCES inspectors (server_id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    method TEXT NOT NULL,
    status INTEGER NOT NULL,
    is_cut INTEGER NOT NULL,
    query TEXT NOT NULL,
    headers TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (server_id, number)
);

CREATE TABLE inspectors (
    server_id INTEGER PRIMARY KEY REFERENCES servers (id),
    account_id INTEGER NOT NULL,
    token_hash BLOB NOT NULL UNIQUE,
    token BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE INDEX inspectors_by_end ON inspectors (expires_at);

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

CREATE TABLE jobs (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    position INTEGER NOT NULL,
    done INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    total INTEGER NOT NULL,
    problems TEXT NOT NULL,
    claimed_until INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (server_id, id)
);

CREATE INDEX jobs_by_age ON jobs (updated_at);

CREATE INDEX jobs_running ON jobs (id) WHERE state = 'running';

CREATE TABLE logins (
    login TEXT PRIMARY KEY,
    credential_id INTEGER NOT NULL UNIQUE REFERENCES credentials (id)
);

CREATE TABLE messages (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    send_id INTEGER NOT NULL,
    token TEXT NOT NULL,
    rcpt_to TEXT NOT NULL,
    status TEXT NOT NULL,
    hold_expiry INTEGER,
    bounce_for_id INTEGER NOT NULL,
    last_delivery_at INTEGER,
    last_seq INTEGER NOT NULL, marks INTEGER NOT NULL DEFAULT 0, send_at INTEGER, rescheduled TEXT,
    PRIMARY KEY (server_id, id)
) WITHOUT ROWID;

CREATE INDEX messages_by_bounce_for ON messages (server_id, bounce_for_id) WHERE bounce_for_id <> 0;

CREATE INDEX messages_by_hold ON messages (hold_expiry) WHERE hold_expiry IS NOT NULL;

CREATE INDEX messages_by_rare_status ON messages (server_id, status, id)
    WHERE status = 'Held' OR status = 'HardFail' OR status = 'Bounced' OR status = 'HoldCancelled' OR status = 'Cancelled';

CREATE TABLE nodes (
    node INTEGER PRIMARY KEY,
    last_id INTEGER NOT NULL
);

CREATE TABLE pacing_notes (
    source TEXT NOT NULL,
    site TEXT NOT NULL,
    per_minute INTEGER,
    connections INTEGER,
    greylist_secs INTEGER,
    reason TEXT NOT NULL,
    learned_at INTEGER NOT NULL,
    PRIMARY KEY (source, site)
);

CREATE INDEX pacing_notes_by_age ON pacing_notes (learned_at);

CREATE TABLE pools (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    shared INTEGER NOT NULL,
    created_at INTEGER NOT NULL
, account_id INTEGER, updated_at INTEGER NOT NULL DEFAULT 0);

CREATE INDEX pools_by_account ON pools (account_id) WHERE account_id IS NOT NULL;

CREATE UNIQUE INDEX pools_shared ON pools (shared) WHERE shared = 1;

CREATE TABLE queue (
    server_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    domain TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    expires_at INTEGER,
    attempts INTEGER NOT NULL, pool_id INTEGER, scheduled INTEGER NOT NULL DEFAULT 0, source_id INTEGER, released_at INTEGER,
    PRIMARY KEY (server_id, message_id)
) WITHOUT ROWID;

CREATE INDEX queue_by_due ON queue (due_at, message_id);

CREATE INDEX queue_by_expiry ON queue (expires_at, message_id) WHERE expires_at IS NOT NULL;

CREATE INDEX queue_scheduled ON queue (due_at, message_id) WHERE scheduled > 0;

CREATE INDEX queue_scheduled_by_server ON queue (server_id, message_id) WHERE scheduled > 0;

CREATE INDEX queue_scheduled_by_server_due ON queue (server_id, due_at, message_id) WHERE scheduled > 0;

CREATE TABLE recipient_domains (
    server_id INTEGER NOT NULL,
    block INTEGER NOT NULL,
    domain TEXT NOT NULL,
    days BLOB NOT NULL,
    PRIMARY KEY (server_id, block, domain)
) WITHOUT ROWID;

CREATE TABLE recipient_providers (
    domain TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE saved_searches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users (id),
    server_id INTEGER NOT NULL REFERENCES servers (id),
    name TEXT NOT NULL,
    query TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (user_id, server_id, query)
);

CREATE INDEX saved_searches_by_server ON saved_searches (server_id, id);

CREATE TABLE search_blocks (
    server_id INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    claimed_until INTEGER NOT NULL,
    ids BLOB NOT NULL,
    PRIMARY KEY (server_id, first_id)
);

CREATE INDEX search_blocks_checked ON search_blocks (server_id, first_id) WHERE state = 2;

CREATE INDEX search_blocks_unchecked ON search_blocks (last_id) WHERE state = 1;

CREATE INDEX search_blocks_with_parts ON search_blocks (claimed_until) WHERE state = 3 AND claimed_until > 0;

CREATE TABLE search_postings (
    server_id INTEGER NOT NULL,
    block INTEGER NOT NULL,
    token INTEGER NOT NULL,
    positions BLOB NOT NULL,
    PRIMARY KEY (server_id, block, token)
) WITHOUT ROWID;

CREATE TABLE sends (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    credential_id INTEGER,
    message_id TEXT NOT NULL,
    mail_from TEXT NOT NULL,
    subject TEXT NOT NULL,
    tag TEXT,
    metadata TEXT NOT NULL,
    options TEXT NOT NULL,
    size INTEGER NOT NULL,
    direction TEXT NOT NULL,
    bounce INTEGER NOT NULL,
    received_with_ssl INTEGER NOT NULL,
    test INTEGER NOT NULL,
    created_at INTEGER NOT NULL, from_domain TEXT NOT NULL DEFAULT '', batch_id INTEGER,
    PRIMARY KEY (server_id, id)
) WITHOUT ROWID;

CREATE INDEX sends_by_batch ON sends (server_id, batch_id) WHERE batch_id IS NOT NULL;

CREATE TABLE server_hours (
    server_id INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (server_id, hour)
) WITHOUT ROWID;

CREATE TRIGGER servers_added AFTER INSERT ON servers BEGIN
    UPDATE setup_changes SET last = last + 1;
    UPDATE servers SET changed_xact = (SELECT last FROM setup_changes) WHERE id = NEW.id;
END;

CREATE TRIGGER servers_changed AFTER UPDATE OF suspended_reason, pool_id, send_rate, delete_at ON servers
    WHEN (OLD.suspended_reason, OLD.pool_id, OLD.send_rate, OLD.delete_at)
         IS NOT (NEW.suspended_reason, NEW.pool_id, NEW.send_rate, NEW.delete_at) BEGIN
    UPDATE setup_changes SET last = last + 1;
    UPDATE servers SET changed_xact = (SELECT last FROM setup_changes) WHERE id = NEW.id;
END;

CREATE TABLE servers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    mode TEXT NOT NULL,
    suspended_reason TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, pool_id INTEGER REFERENCES pools (id), send_rate TEXT, hourly_limit INTEGER, track_opens INTEGER NOT NULL DEFAULT 0, track_clicks INTEGER NOT NULL DEFAULT 0, track_excluded_hosts TEXT NOT NULL DEFAULT '[]', retention_bodies INTEGER, retention_messages INTEGER, mode_ceiling TEXT, send_rate_ceiling TEXT, hourly_limit_ceiling INTEGER, retention_bodies_ceiling INTEGER, retention_messages_ceiling INTEGER, version INTEGER NOT NULL DEFAULT 1, delete_at INTEGER, account_mode_ceiling TEXT, account_send_rate_ceiling TEXT, account_hourly_limit_ceiling INTEGER, account_retention_bodies_ceiling INTEGER, account_retention_messages_ceiling INTEGER, suspended_by TEXT, changed_xact INTEGER NOT NULL DEFAULT 0,
    UNIQUE (account_id, name)
);

CREATE INDEX servers_by_account ON servers (account_id, id);

CREATE INDEX servers_by_account_pool ON servers (account_id, pool_id) WHERE pool_id IS NOT NULL;

CREATE INDEX servers_by_change ON servers (changed_xact);

CREATE INDEX servers_by_delete_at ON servers (delete_at) WHERE delete_at IS NOT NULL;

CREATE INDEX servers_by_name ON servers (name, id);

CREATE INDEX servers_by_pool ON servers (pool_id) WHERE pool_id IS NOT NULL;

CREATE INDEX servers_deleted ON servers (id) WHERE delete_at IS NOT NULL;

CREATE INDEX servers_deleted_by_account ON servers (account_id, id) WHERE delete_at IS NOT NULL;

CREATE INDEX servers_suspended ON servers (id) WHERE suspended_reason IS NOT NULL;

CREATE INDEX servers_suspended_by_account ON servers (account_id, id) WHERE suspended_reason IS NOT NULL;

CREATE TABLE settings (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE setup_changes (last INTEGER NOT NULL);

CREATE TABLE sign_in_attempts (
    key BLOB PRIMARY KEY,
    since INTEGER NOT NULL,
    count INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX sign_in_attempts_by_age ON sign_in_attempts (since);

CREATE TABLE "source_days" (
    source_id INTEGER NOT NULL,
    provider TEXT NOT NULL,
    day INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    bounced INTEGER NOT NULL,
    complained INTEGER NOT NULL DEFAULT 0,
    sent_before INTEGER NOT NULL DEFAULT 0,
    bounced_before INTEGER NOT NULL DEFAULT 0,
    complained_before INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (source_id, provider, day)
) WITHOUT ROWID;

CREATE TABLE sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pool_id INTEGER NOT NULL REFERENCES pools (id),
    address TEXT NOT NULL UNIQUE,
    helo TEXT NOT NULL,
    weight INTEGER NOT NULL,
    warmup_started_at INTEGER,
    warmup_paused_reason TEXT,
    created_at INTEGER NOT NULL
, warmup_paused_at INTEGER, warmup_days_paused INTEGER NOT NULL DEFAULT 0, version INTEGER NOT NULL DEFAULT 1, updated_at INTEGER NOT NULL DEFAULT 0);

CREATE INDEX sources_by_pool ON sources (pool_id);

CREATE TABLE suppressions (
    server_id INTEGER NOT NULL,
    address TEXT NOT NULL,
    reason TEXT NOT NULL,
    details TEXT NOT NULL,
    origin_message_id INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (server_id, address)
) WITHOUT ROWID;

CREATE INDEX suppressions_by_expiry ON suppressions (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX suppressions_by_reason ON suppressions (server_id, reason, created_at, address);

CREATE INDEX suppressions_by_time ON suppressions (server_id, created_at, address);

CREATE TABLE template_versions (
    server_id INTEGER NOT NULL,
    template_id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    layout_id INTEGER,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    published_at INTEGER,
    PRIMARY KEY (server_id, template_id, version)
);

CREATE INDEX template_versions_by_layout ON template_versions (server_id, layout_id) WHERE layout_id IS NOT NULL;

CREATE TABLE templates (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    server_id INTEGER NOT NULL REFERENCES servers (id),
    alias TEXT,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    latest INTEGER NOT NULL,
    published INTEGER,
    previous INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE UNIQUE INDEX templates_by_alias ON templates (server_id, alias);

CREATE UNIQUE INDEX templates_by_name ON templates (server_id, name);

CREATE INDEX templates_by_server ON templates (server_id, id);

CREATE TABLE user_addresses (
    user_id INTEGER NOT NULL REFERENCES users (id),
    address TEXT NOT NULL,
    last_sign_in_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, address)
) WITHOUT ROWID;

CREATE TABLE user_recovery_codes (
    user_id INTEGER NOT NULL REFERENCES users (id),
    code_hash BLOB NOT NULL,
    PRIMARY KEY (user_id, code_hash)
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

CREATE INDEX user_sessions_by_end ON user_sessions (expires_at);

CREATE INDEX user_sessions_by_user ON user_sessions (user_id, id);

CREATE TABLE user_tokens (
    token_hash BLOB PRIMARY KEY,
    kind TEXT NOT NULL,
    user_id INTEGER REFERENCES users (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX user_tokens_by_end ON user_tokens (expires_at);

CREATE INDEX user_tokens_by_user ON user_tokens (user_id, kind);

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

CREATE TABLE webhook_attempts (
    server_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    webhook_id INTEGER NOT NULL,
    event_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    number INTEGER NOT NULL,
    url TEXT NOT NULL,
    status INTEGER,
    answer TEXT NOT NULL,
    error_class TEXT,
    error TEXT,
    connect_us INTEGER,
    duration_us INTEGER NOT NULL,
    next_attempt_at INTEGER,
    PRIMARY KEY (server_id, id)
) WITHOUT ROWID;

CREATE INDEX webhook_attempts_by_event ON webhook_attempts (server_id, event_id);

CREATE INDEX webhook_attempts_by_webhook ON webhook_attempts (server_id, webhook_id, id);

CREATE TABLE webhook_queue (
    server_id INTEGER NOT NULL,
    webhook_id INTEGER NOT NULL,
    event_id INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (server_id, webhook_id, event_id)
) WITHOUT ROWID;

CREATE INDEX webhook_queue_by_due ON webhook_queue (server_id, webhook_id, due_at, event_id);

CREATE TABLE webhooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    server_id INTEGER NOT NULL REFERENCES servers (id),
    url TEXT NOT NULL,
    wants INTEGER NOT NULL,
    format TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    disabled_reason TEXT,
    secret TEXT NOT NULL,
    previous_secret TEXT,
    previous_until INTEGER,
    failing_since INTEGER,
    last_success_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
, version INTEGER NOT NULL DEFAULT 1, last_failure_at INTEGER);

CREATE INDEX webhooks_by_server ON webhooks (server_id);
