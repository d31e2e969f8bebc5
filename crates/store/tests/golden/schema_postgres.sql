TABLE account_counts
    account_id bigint NOT NULL
    thing text NOT NULL
    count bigint NOT NULL
    PRIMARY KEY (account_id, thing)

TABLE account_keys
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    account_id bigint
    name text NOT NULL
    key_hash bytea NOT NULL
    scopes text NOT NULL
    allow text NOT NULL
    expires_at bigint
    revoked_at bigint
    last_used_at bigint
    created_at bigint NOT NULL
    updated_at bigint NOT NULL
    UNIQUE (key_hash)
    PRIMARY KEY (id)
    FOREIGN KEY (account_id) REFERENCES accounts(id)
    CREATE INDEX account_keys_by_account ON public.account_keys USING btree (account_id, id)

TABLE account_notices
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    account_id bigint NOT NULL
    kind text NOT NULL
    data text NOT NULL
    at bigint NOT NULL
    after_server bigint NOT NULL DEFAULT 0
    PRIMARY KEY (id)

TABLE account_periods
    account_id bigint NOT NULL
    period bigint NOT NULL
    number bigint NOT NULL
    messages bigint NOT NULL
    PRIMARY KEY (account_id, period, number)

TABLE accounts
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    name text NOT NULL
    suspended_reason text
    created_at bigint NOT NULL
    updated_at bigint NOT NULL
    version bigint NOT NULL DEFAULT 1
    delete_at bigint
    hourly_limit bigint
    daily_limit bigint
    monthly_limit bigint
    send_rate text
    servers_max bigint
    domains_max bigint
    webhooks_max bigint
    users_max bigint
    retention_bodies bigint
    retention_messages bigint
    changed_xact bigint NOT NULL DEFAULT 0
    PRIMARY KEY (id)
    CREATE INDEX accounts_by_change ON public.accounts USING btree (changed_xact)
    CREATE INDEX accounts_by_delete_at ON public.accounts USING btree (delete_at) WHERE (delete_at IS NOT NULL)
    CREATE INDEX accounts_by_name ON public.accounts USING btree (name, id)
    CREATE INDEX accounts_deleted ON public.accounts USING btree (id) WHERE (delete_at IS NOT NULL)
    CREATE INDEX accounts_suspended ON public.accounts USING btree (id) WHERE (suspended_reason IS NOT NULL)
    CREATE TRIGGER accounts_changed BEFORE UPDATE OF suspended_reason, send_rate, delete_at ON public.accounts FOR EACH ROW WHEN ((((old.suspended_reason IS DISTINCT FROM new.suspended_reason) OR (old.send_rate IS DISTINCT FROM new.send_rate)) OR (old.delete_at IS DISTINCT FROM new.delete_at))) EXECUTE FUNCTION note_setup_change()

TABLE audit
    account_id bigint NOT NULL
    seq bigint NOT NULL
    at bigint NOT NULL
    actor text NOT NULL
    actor_id bigint
    address text
    operation text NOT NULL
    subject text NOT NULL
    subject_id bigint
    before text
    after text
    hash bytea NOT NULL
    PRIMARY KEY (account_id, seq)
    CREATE INDEX audit_by_actor ON public.audit USING btree (account_id, actor, at, seq)
    CREATE INDEX audit_by_actor_id ON public.audit USING btree (account_id, (
CASE
    WHEN ((actor_id = 0) AND (actor = 'user'::text) AND (subject = 'user'::text)) THEN subject_id
    ELSE actor_id
END), at, seq)
    CREATE INDEX audit_by_operation ON public.audit USING btree (account_id, operation, at, seq)
    CREATE INDEX audit_by_subject ON public.audit USING btree (account_id, subject, at, seq)
    CREATE INDEX audit_by_subject_id ON public.audit USING btree (account_id, subject_id, at, seq)
    CREATE INDEX audit_by_time ON public.audit USING btree (account_id, at, seq)

TABLE audit_heads
    account_id bigint NOT NULL
    seq bigint NOT NULL
    hash bytea NOT NULL
    PRIMARY KEY (account_id)

TABLE bodies
    server_id bigint NOT NULL
    send_id bigint NOT NULL
    piece bigint NOT NULL
    data bytea NOT NULL STORAGE EXTERNAL
    PRIMARY KEY (server_id, send_id, piece)
    PARTITION BY RANGE (send_id)

TABLE counter_dimensions
    server_id bigint NOT NULL
    id bigint NOT NULL
    shape bigint NOT NULL
    domain text NOT NULL
    tag text NOT NULL
    provider text NOT NULL
    template text NOT NULL
    pool_id bigint NOT NULL
    credential_id bigint NOT NULL
    last_day bigint NOT NULL
    bounce_class text NOT NULL DEFAULT ''::text
    source_ip text NOT NULL DEFAULT ''::text
    tls_version text NOT NULL DEFAULT ''::text
    PRIMARY KEY (server_id, id)
    CREATE UNIQUE INDEX counter_dimensions_by_value ON public.counter_dimensions USING btree (server_id, shape, domain, tag, provider, template, pool_id, credential_id, bounce_class, source_ip, tls_version)

TABLE counter_marks
    server_id bigint NOT NULL
    xact bigint NOT NULL
    event_id bigint NOT NULL
    PRIMARY KEY (server_id)

TABLE counters
    server_id bigint NOT NULL
    grain bigint NOT NULL
    shape bigint NOT NULL
    at bigint NOT NULL
    dimensions bigint NOT NULL
    counts bytea NOT NULL
    first_attempt bytea NOT NULL
    sent bytea NOT NULL
    PRIMARY KEY (server_id, grain, shape, at, dimensions)

TABLE creations
    account_id bigint NOT NULL
    key text NOT NULL
    fingerprint bytea NOT NULL
    subject_id bigint NOT NULL
    created_at bigint NOT NULL
    PRIMARY KEY (account_id, key)
    CREATE INDEX creations_by_age ON public.creations USING btree (created_at)

TABLE credentials
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    server_id bigint NOT NULL
    name text NOT NULL
    key_hash bytea NOT NULL
    secret_hash bytea NOT NULL
    scope text NOT NULL
    allow text NOT NULL
    hold bigint NOT NULL
    test bigint NOT NULL
    expires_at bigint
    revoked_at bigint
    replaced_by bigint
    last_used_at bigint
    created_at bigint NOT NULL
    updated_at bigint NOT NULL
    version bigint NOT NULL DEFAULT 1
    account_id bigint NOT NULL DEFAULT 0
    UNIQUE (key_hash)
    PRIMARY KEY (id)
    FOREIGN KEY (server_id) REFERENCES servers(id)
    CREATE INDEX credentials_by_account ON public.credentials USING btree (account_id, id)
    CREATE INDEX credentials_by_account_name ON public.credentials USING btree (account_id, name, id)
    CREATE INDEX credentials_by_address ON public.credentials USING btree (id) WHERE (scope = 'address'::text)
    CREATE INDEX credentials_by_name ON public.credentials USING btree (name, id)
    CREATE INDEX credentials_by_revocation ON public.credentials USING btree (revoked_at) WHERE (revoked_at IS NOT NULL)
    CREATE INDEX credentials_by_server ON public.credentials USING btree (server_id)
    CREATE INDEX credentials_by_server_name ON public.credentials USING btree (server_id, name, id)
    CREATE INDEX credentials_by_successor ON public.credentials USING btree (replaced_by) WHERE (replaced_by IS NOT NULL)
    CREATE INDEX credentials_revoked ON public.credentials USING btree (id) WHERE (revoked_at IS NOT NULL)
    CREATE INDEX credentials_revoked_by_account ON public.credentials USING btree (account_id, id) WHERE (revoked_at IS NOT NULL)
    CREATE INDEX credentials_revoked_by_server ON public.credentials USING btree (server_id, id) WHERE (revoked_at IS NOT NULL)
    CREATE INDEX credentials_unrevoked ON public.credentials USING btree (id) WHERE (revoked_at IS NULL)
    CREATE INDEX credentials_unrevoked_by_account ON public.credentials USING btree (account_id, id) WHERE (revoked_at IS NULL)
    CREATE INDEX credentials_unrevoked_by_server ON public.credentials USING btree (server_id, id) WHERE (revoked_at IS NULL)

TABLE deliveries
    server_id bigint NOT NULL
    message_id bigint NOT NULL
    id bigint NOT NULL
    at bigint NOT NULL
    status text NOT NULL
    details text NOT NULL
    output text NOT NULL
    sent_with_ssl bigint NOT NULL
    log_id text NOT NULL
    duration_us bigint
    mx text
    remote_ip text
    source_ip text
    tls text
    code bigint
    enhanced_code text
    bounce_class text
    next_attempt_at bigint
    possible_duplicate bigint NOT NULL DEFAULT 0
    tls_policy text
    dkim text
    PRIMARY KEY (server_id, message_id, id)
    PARTITION BY RANGE (message_id)

TABLE delivery_transcripts
    server_id bigint NOT NULL
    message_id bigint NOT NULL
    delivery_id bigint NOT NULL
    transcript text NOT NULL
    PRIMARY KEY (server_id, message_id, delivery_id)
    PARTITION BY RANGE (message_id)

TABLE domain_keys
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    domain_id bigint NOT NULL
    selector text NOT NULL
    algorithm text NOT NULL
    private_key bytea NOT NULL
    public_key bytea NOT NULL
    state text NOT NULL
    state_since bigint NOT NULL
    fails_since bigint
    created_at bigint NOT NULL
    UNIQUE (domain_id, selector)
    PRIMARY KEY (id)
    FOREIGN KEY (domain_id) REFERENCES domains(id)

TABLE domain_links
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    domain_id bigint NOT NULL
    token_hash bytea NOT NULL
    created_at bigint NOT NULL
    expires_at bigint NOT NULL
    UNIQUE (token_hash)
    PRIMARY KEY (id)
    FOREIGN KEY (domain_id) REFERENCES domains(id)
    CREATE INDEX domain_links_by_domain ON public.domain_links USING btree (domain_id, id)
    CREATE INDEX domain_links_by_end ON public.domain_links USING btree (expires_at)

TABLE domain_reports
    domain text NOT NULL
    kind text NOT NULL
    organisation text NOT NULL
    report_id text NOT NULL
    begin_at bigint NOT NULL
    end_at bigint NOT NULL
    received_at bigint NOT NULL
    total bigint NOT NULL
    passed bigint NOT NULL
    details text NOT NULL
    PRIMARY KEY (domain, kind, organisation, report_id)
    CREATE INDEX domain_reports_by_age ON public.domain_reports USING btree (received_at)
    CREATE INDEX domain_reports_by_domain_age ON public.domain_reports USING btree (domain, received_at)

TABLE domains
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    server_id bigint
    name text NOT NULL
    verified_at bigint
    created_at bigint NOT NULL
    updated_at bigint NOT NULL
    track_opens bigint
    track_clicks bigint
    track_host text
    account_id bigint NOT NULL
    verified_by text
    good_since bigint
    failing_since bigint
    check_begun_at bigint
    checked_at bigint
    next_check_at bigint NOT NULL
    records text NOT NULL
    return_path_since bigint
    track_alias_at bigint
    track_host_since bigint
    result_begun_at bigint
    return_path_fails_since bigint
    return_path_fails bigint NOT NULL DEFAULT 0
    track_host_fails_since bigint
    track_host_fails bigint NOT NULL DEFAULT 0
    untold text
    UNIQUE (server_id, name)
    PRIMARY KEY (id)
    FOREIGN KEY (account_id) REFERENCES accounts(id)
    FOREIGN KEY (server_id) REFERENCES servers(id)
    CREATE INDEX domains_by_account ON public.domains USING btree (account_id, id)
    CREATE INDEX domains_by_name ON public.domains USING btree (name)
    CREATE INDEX domains_by_next_check ON public.domains USING btree (next_check_at)
    CREATE INDEX domains_by_track_alias ON public.domains USING btree (name) WHERE (track_alias_at IS NOT NULL)
    CREATE INDEX domains_by_track_host ON public.domains USING btree (track_host) WHERE (track_host IS NOT NULL)
    CREATE UNIQUE INDEX domains_of_account ON public.domains USING btree (account_id, name) WHERE (server_id IS NULL)
    CREATE INDEX domains_untold ON public.domains USING btree (id) WHERE (untold IS NOT NULL)

TABLE events
    server_id bigint NOT NULL
    id bigint NOT NULL
    message_id bigint NOT NULL
    seq bigint NOT NULL
    kind text NOT NULL
    at bigint NOT NULL
    test bigint NOT NULL
    data text NOT NULL
    xact bigint NOT NULL DEFAULT event_xact()
    PRIMARY KEY (server_id, id)
    CREATE INDEX events_by_message ON ONLY public.events USING btree (server_id, message_id, seq)
    CREATE INDEX events_by_xact ON ONLY public.events USING btree (server_id, xact, id)
    PARTITION BY RANGE (id)

TABLE former_tracking_hosts
    account_id bigint NOT NULL
    host text NOT NULL
    until bigint NOT NULL
    PRIMARY KEY (account_id, host)

TABLE gates
    scope_kind text NOT NULL
    scope_key text NOT NULL
    automatic bigint NOT NULL
    action text NOT NULL
    per_minute bigint
    reason text NOT NULL
    created_at bigint NOT NULL
    ends_at bigint
    set_by text
    PRIMARY KEY (scope_kind, scope_key, automatic)

TABLE idempotency_keys
    server_id bigint NOT NULL
    key text NOT NULL
    fingerprint bytea NOT NULL
    answer text NOT NULL
    expires_at bigint NOT NULL
    PRIMARY KEY (server_id, key)
    CREATE INDEX idempotency_keys_by_expiry ON public.idempotency_keys USING btree (expires_at)

TABLE inspector_requests
    server_id bigint NOT NULL
    number bigint NOT NULL
    at bigint NOT NULL
    bytes bigint NOT NULL
    method text NOT NULL
    status bigint NOT NULL
    is_cut bigint NOT NULL
    query text NOT NULL
    headers text NOT NULL
    body text NOT NULL
    PRIMARY KEY (server_id, number)
    FOREIGN KEY (server_id) REFERENCES inspectors(server_id) ON DELETE CASCADE

TABLE inspectors
    server_id bigint NOT NULL
    account_id bigint NOT NULL
    token_hash bytea NOT NULL
    token bytea NOT NULL
    expires_at bigint NOT NULL
    count bigint NOT NULL
    changed bigint NOT NULL
    created_at bigint NOT NULL
    UNIQUE (token_hash)
    PRIMARY KEY (server_id)
    FOREIGN KEY (server_id) REFERENCES servers(id)
    CREATE INDEX inspectors_by_end ON public.inspectors USING btree (expires_at)

TABLE invitations
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    account_id bigint NOT NULL
    email text NOT NULL
    role text NOT NULL
    operator bigint NOT NULL
    token_hash bytea NOT NULL
    created_at bigint NOT NULL
    expires_at bigint NOT NULL
    UNIQUE (account_id, email)
    UNIQUE (token_hash)
    PRIMARY KEY (id)
    FOREIGN KEY (account_id) REFERENCES accounts(id)
    CREATE INDEX invitations_by_end ON public.invitations USING btree (expires_at)

TABLE jobs
    server_id bigint NOT NULL
    id bigint NOT NULL
    kind text NOT NULL
    request text NOT NULL
    state text NOT NULL
    position bigint NOT NULL
    done bigint NOT NULL
    failed bigint NOT NULL
    total bigint NOT NULL
    problems text NOT NULL
    claimed_until bigint NOT NULL
    created_at bigint NOT NULL
    updated_at bigint NOT NULL
    PRIMARY KEY (server_id, id)
    CREATE INDEX jobs_by_age ON public.jobs USING btree (updated_at)
    CREATE INDEX jobs_running ON public.jobs USING btree (id) WHERE (state = 'running'::text)

TABLE logins
    login text NOT NULL
    credential_id bigint NOT NULL
    UNIQUE (credential_id)
    PRIMARY KEY (login)
    FOREIGN KEY (credential_id) REFERENCES credentials(id)

TABLE messages
    server_id bigint NOT NULL
    id bigint NOT NULL
    send_id bigint NOT NULL
    token text NOT NULL
    rcpt_to text NOT NULL
    status text NOT NULL
    hold_expiry bigint
    bounce_for_id bigint NOT NULL
    last_delivery_at bigint
    last_seq bigint NOT NULL
    marks bigint NOT NULL DEFAULT 0
    send_at bigint
    rescheduled text
    PRIMARY KEY (server_id, id)
    CREATE INDEX messages_by_bounce_for ON ONLY public.messages USING btree (server_id, bounce_for_id) WHERE (bounce_for_id <> 0)
    CREATE INDEX messages_by_hold ON ONLY public.messages USING btree (hold_expiry) WHERE (hold_expiry IS NOT NULL)
    CREATE INDEX messages_by_rare_status ON ONLY public.messages USING btree (server_id, status, id) WHERE (status = ANY (ARRAY['Held'::text, 'HardFail'::text, 'Bounced'::text, 'HoldCancelled'::text, 'Cancelled'::text]))
    PARTITION BY RANGE (id)

TABLE node_ids
    node bigint NOT NULL
    lane bigint NOT NULL
    epoch bigint NOT NULL
    last_id bigint NOT NULL
    PRIMARY KEY (node, lane)

TABLE nodes
    node bigint NOT NULL
    owner text NOT NULL
    epoch bigint NOT NULL
    lease_until bigint NOT NULL
    owner_since bigint NOT NULL DEFAULT 0
    PRIMARY KEY (node)

TABLE pacing_notes
    source text NOT NULL
    site text NOT NULL
    per_minute bigint
    connections bigint
    greylist_secs bigint
    reason text NOT NULL
    learned_at bigint NOT NULL
    PRIMARY KEY (source, site)
    CREATE INDEX pacing_notes_by_age ON public.pacing_notes USING btree (learned_at)

TABLE pools
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    name text NOT NULL
    shared bigint NOT NULL
    created_at bigint NOT NULL
    account_id bigint
    updated_at bigint NOT NULL DEFAULT 0
    UNIQUE (name)
    PRIMARY KEY (id)
    CREATE INDEX pools_by_account ON public.pools USING btree (account_id) WHERE (account_id IS NOT NULL)
    CREATE UNIQUE INDEX pools_shared ON public.pools USING btree (shared) WHERE (shared = 1)

TABLE queue
    server_id bigint NOT NULL
    message_id bigint NOT NULL
    domain text NOT NULL
    due_at bigint NOT NULL
    expires_at bigint
    attempts bigint NOT NULL
    claimed_node bigint
    claimed_epoch bigint
    pool_id bigint
    begun_at bigint
    scheduled bigint NOT NULL DEFAULT 0
    source_id bigint
    released_at bigint
    PRIMARY KEY (server_id, message_id)
    CREATE INDEX queue_by_claim ON public.queue USING btree (claimed_node, claimed_epoch) WHERE (claimed_node IS NOT NULL)
    CREATE INDEX queue_by_due ON public.queue USING btree (due_at, message_id) WHERE ((claimed_node IS NULL) AND (scheduled = 0))
    CREATE INDEX queue_by_expiry ON public.queue USING btree (expires_at, message_id) WHERE (expires_at IS NOT NULL)
    CREATE INDEX queue_free_by_server ON public.queue USING btree (server_id, due_at, message_id) WHERE ((claimed_node IS NULL) AND (scheduled = 0))
    CREATE INDEX queue_scheduled ON public.queue USING btree (due_at, message_id) WHERE (scheduled > 0)
    CREATE INDEX queue_scheduled_by_server ON public.queue USING btree (server_id, message_id) WHERE (scheduled > 0)
    CREATE INDEX queue_scheduled_by_server_due ON public.queue USING btree (server_id, due_at, message_id) WHERE (scheduled > 0)

TABLE recipient_domains
    server_id bigint NOT NULL
    block bigint NOT NULL
    domain text NOT NULL
    days bytea NOT NULL
    PRIMARY KEY (server_id, block, domain)

TABLE recipient_providers
    domain text NOT NULL
    provider text NOT NULL
    updated_at bigint NOT NULL
    PRIMARY KEY (domain)

TABLE saved_searches
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    user_id bigint NOT NULL
    server_id bigint NOT NULL
    name text NOT NULL
    query text NOT NULL
    created_at bigint NOT NULL
    UNIQUE (user_id, server_id, query)
    PRIMARY KEY (id)
    FOREIGN KEY (server_id) REFERENCES servers(id)
    FOREIGN KEY (user_id) REFERENCES users(id)
    CREATE INDEX saved_searches_by_server ON public.saved_searches USING btree (server_id, id)

TABLE schema_version
    version bigint NOT NULL
    PRIMARY KEY (version)

TABLE search_blocks
    server_id bigint NOT NULL
    first_id bigint NOT NULL
    last_id bigint NOT NULL
    state bigint NOT NULL
    claimed_until bigint NOT NULL
    ids bytea NOT NULL
    PRIMARY KEY (server_id, first_id)
    CREATE INDEX search_blocks_checked ON public.search_blocks USING btree (server_id, first_id) WHERE (state = 2)
    CREATE INDEX search_blocks_unchecked ON public.search_blocks USING btree (last_id) WHERE (state = 1)
    CREATE INDEX search_blocks_with_parts ON public.search_blocks USING btree (claimed_until) WHERE ((state = 3) AND (claimed_until > 0))

TABLE search_postings
    server_id bigint NOT NULL
    block bigint NOT NULL
    token bigint NOT NULL
    positions bytea NOT NULL
    PRIMARY KEY (server_id, block, token)

TABLE sends
    server_id bigint NOT NULL
    id bigint NOT NULL
    credential_id bigint
    message_id text NOT NULL
    mail_from text NOT NULL
    subject text NOT NULL
    tag text
    metadata text NOT NULL
    options text NOT NULL
    size bigint NOT NULL
    direction text NOT NULL
    bounce bigint NOT NULL
    received_with_ssl bigint NOT NULL
    test bigint NOT NULL
    created_at bigint NOT NULL
    from_domain text NOT NULL DEFAULT ''::text
    batch_id bigint
    PRIMARY KEY (server_id, id)
    CREATE INDEX sends_by_batch ON ONLY public.sends USING btree (server_id, batch_id) WHERE (batch_id IS NOT NULL)
    PARTITION BY RANGE (id)

TABLE server_hours
    server_id bigint NOT NULL
    hour bigint NOT NULL
    messages bigint NOT NULL
    PRIMARY KEY (server_id, hour)

TABLE servers
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    account_id bigint NOT NULL
    name text NOT NULL
    mode text NOT NULL
    suspended_reason text
    created_at bigint NOT NULL
    updated_at bigint NOT NULL
    pool_id bigint
    send_rate text
    hourly_limit bigint
    track_opens bigint NOT NULL DEFAULT 0
    track_clicks bigint NOT NULL DEFAULT 0
    track_excluded_hosts text NOT NULL DEFAULT '[]'::text
    retention_bodies bigint
    retention_messages bigint
    mode_ceiling text
    send_rate_ceiling text
    hourly_limit_ceiling bigint
    retention_bodies_ceiling bigint
    retention_messages_ceiling bigint
    version bigint NOT NULL DEFAULT 1
    delete_at bigint
    account_mode_ceiling text
    account_send_rate_ceiling text
    account_hourly_limit_ceiling bigint
    account_retention_bodies_ceiling bigint
    account_retention_messages_ceiling bigint
    suspended_by text
    changed_xact bigint NOT NULL DEFAULT event_xact()
    UNIQUE (account_id, name)
    PRIMARY KEY (id)
    FOREIGN KEY (account_id) REFERENCES accounts(id)
    FOREIGN KEY (pool_id) REFERENCES pools(id)
    CREATE INDEX servers_by_account ON public.servers USING btree (account_id, id)
    CREATE INDEX servers_by_account_pool ON public.servers USING btree (account_id, pool_id) WHERE (pool_id IS NOT NULL)
    CREATE INDEX servers_by_change ON public.servers USING btree (changed_xact)
    CREATE INDEX servers_by_delete_at ON public.servers USING btree (delete_at) WHERE (delete_at IS NOT NULL)
    CREATE INDEX servers_by_name ON public.servers USING btree (name, id)
    CREATE INDEX servers_by_pool ON public.servers USING btree (pool_id) WHERE (pool_id IS NOT NULL)
    CREATE INDEX servers_deleted ON public.servers USING btree (id) WHERE (delete_at IS NOT NULL)
    CREATE INDEX servers_deleted_by_account ON public.servers USING btree (account_id, id) WHERE (delete_at IS NOT NULL)
    CREATE INDEX servers_suspended ON public.servers USING btree (id) WHERE (suspended_reason IS NOT NULL)
    CREATE INDEX servers_suspended_by_account ON public.servers USING btree (account_id, id) WHERE (suspended_reason IS NOT NULL)
    CREATE TRIGGER servers_changed BEFORE UPDATE OF suspended_reason, pool_id, send_rate, delete_at ON public.servers FOR EACH ROW WHEN (((((old.suspended_reason IS DISTINCT FROM new.suspended_reason) OR (old.pool_id IS DISTINCT FROM new.pool_id)) OR (old.send_rate IS DISTINCT FROM new.send_rate)) OR (old.delete_at IS DISTINCT FROM new.delete_at))) EXECUTE FUNCTION note_setup_change()

TABLE settings
    key text NOT NULL
    value text NOT NULL
    PRIMARY KEY (key)

TABLE sign_in_attempts
    key bytea NOT NULL
    since bigint NOT NULL
    count bigint NOT NULL
    PRIMARY KEY (key)
    CREATE INDEX sign_in_attempts_by_age ON public.sign_in_attempts USING btree (since)

TABLE source_days
    source_id bigint NOT NULL
    day bigint NOT NULL
    sent bigint NOT NULL
    bounced bigint NOT NULL
    complained bigint NOT NULL DEFAULT 0
    sent_before bigint NOT NULL DEFAULT 0
    bounced_before bigint NOT NULL DEFAULT 0
    complained_before bigint NOT NULL DEFAULT 0
    provider text NOT NULL
    PRIMARY KEY (source_id, provider, day)

TABLE sources
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    pool_id bigint NOT NULL
    address text NOT NULL
    helo text NOT NULL
    weight bigint NOT NULL
    warmup_started_at bigint
    warmup_paused_reason text
    created_at bigint NOT NULL
    warmup_paused_at bigint
    warmup_days_paused bigint NOT NULL DEFAULT 0
    version bigint NOT NULL DEFAULT 1
    updated_at bigint NOT NULL DEFAULT 0
    UNIQUE (address)
    PRIMARY KEY (id)
    FOREIGN KEY (pool_id) REFERENCES pools(id)
    CREATE INDEX sources_by_pool ON public.sources USING btree (pool_id)

TABLE suppressions
    server_id bigint NOT NULL
    address text NOT NULL
    reason text NOT NULL
    details text NOT NULL
    origin_message_id bigint
    created_at bigint NOT NULL
    expires_at bigint
    PRIMARY KEY (server_id, address)
    CREATE INDEX suppressions_by_expiry ON public.suppressions USING btree (expires_at) WHERE (expires_at IS NOT NULL)
    CREATE INDEX suppressions_by_reason ON public.suppressions USING btree (server_id, reason, created_at, address)
    CREATE INDEX suppressions_by_time ON public.suppressions USING btree (server_id, created_at, address)

TABLE template_versions
    server_id bigint NOT NULL
    template_id bigint NOT NULL
    version bigint NOT NULL
    layout_id bigint
    content text NOT NULL
    created_at bigint NOT NULL
    published_at bigint
    PRIMARY KEY (server_id, template_id, version)
    CREATE INDEX template_versions_by_layout ON public.template_versions USING btree (server_id, layout_id) WHERE (layout_id IS NOT NULL)

TABLE templates
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    server_id bigint NOT NULL
    alias text
    name text NOT NULL
    kind text NOT NULL
    latest bigint NOT NULL
    published bigint
    previous bigint
    created_at bigint NOT NULL
    updated_at bigint NOT NULL
    PRIMARY KEY (id)
    FOREIGN KEY (server_id) REFERENCES servers(id)
    CREATE UNIQUE INDEX templates_by_alias ON public.templates USING btree (server_id, alias)
    CREATE UNIQUE INDEX templates_by_name ON public.templates USING btree (server_id, name)
    CREATE INDEX templates_by_server ON public.templates USING btree (server_id, id)

TABLE user_addresses
    user_id bigint NOT NULL
    address text NOT NULL
    last_sign_in_at bigint NOT NULL
    PRIMARY KEY (user_id, address)
    FOREIGN KEY (user_id) REFERENCES users(id)

TABLE user_recovery_codes
    user_id bigint NOT NULL
    code_hash bytea NOT NULL
    PRIMARY KEY (user_id, code_hash)
    FOREIGN KEY (user_id) REFERENCES users(id)

TABLE user_sessions
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    user_id bigint NOT NULL
    token_hash bytea NOT NULL
    address text
    user_agent text NOT NULL
    created_at bigint NOT NULL
    last_seen_at bigint NOT NULL
    expires_at bigint NOT NULL
    UNIQUE (token_hash)
    PRIMARY KEY (id)
    FOREIGN KEY (user_id) REFERENCES users(id)
    CREATE INDEX user_sessions_by_end ON public.user_sessions USING btree (expires_at)
    CREATE INDEX user_sessions_by_user ON public.user_sessions USING btree (user_id, id)

TABLE user_tokens
    token_hash bytea NOT NULL
    kind text NOT NULL
    user_id bigint
    created_at bigint NOT NULL
    expires_at bigint NOT NULL
    PRIMARY KEY (token_hash)
    FOREIGN KEY (user_id) REFERENCES users(id)
    CREATE INDEX user_tokens_by_end ON public.user_tokens USING btree (expires_at)
    CREATE INDEX user_tokens_by_user ON public.user_tokens USING btree (user_id, kind)

TABLE users
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    account_id bigint NOT NULL
    email text NOT NULL
    name text NOT NULL
    role text NOT NULL
    operator bigint NOT NULL
    password_hash text
    password_changed_at bigint
    totp_seed bytea
    totp_pending bytea
    totp_step bigint NOT NULL DEFAULT 0
    last_sign_in_at bigint
    version bigint NOT NULL DEFAULT 1
    created_at bigint NOT NULL
    updated_at bigint NOT NULL
    UNIQUE (email)
    PRIMARY KEY (id)
    FOREIGN KEY (account_id) REFERENCES accounts(id)
    CREATE INDEX users_by_account ON public.users USING btree (account_id, id)

TABLE webhook_attempts
    server_id bigint NOT NULL
    id bigint NOT NULL
    webhook_id bigint NOT NULL
    event_id bigint NOT NULL
    message_id bigint NOT NULL
    kind text NOT NULL
    at bigint NOT NULL
    number bigint NOT NULL
    url text NOT NULL
    status bigint
    answer text NOT NULL
    error_class text
    error text
    connect_us bigint
    duration_us bigint NOT NULL
    next_attempt_at bigint
    PRIMARY KEY (server_id, id)
    CREATE INDEX webhook_attempts_by_event ON ONLY public.webhook_attempts USING btree (server_id, event_id)
    CREATE INDEX webhook_attempts_by_webhook ON ONLY public.webhook_attempts USING btree (server_id, webhook_id, id)
    PARTITION BY RANGE (id)

TABLE webhook_queue
    server_id bigint NOT NULL
    webhook_id bigint NOT NULL
    event_id bigint NOT NULL
    due_at bigint NOT NULL
    attempts bigint NOT NULL
    claimed_until bigint
    claimed_node bigint
    PRIMARY KEY (server_id, webhook_id, event_id)
    CREATE INDEX webhook_queue_by_due ON public.webhook_queue USING btree (server_id, webhook_id, due_at, event_id)

TABLE webhooks
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY
    server_id bigint NOT NULL
    url text NOT NULL
    wants bigint NOT NULL
    format text NOT NULL
    enabled bigint NOT NULL
    disabled_reason text
    secret text NOT NULL
    previous_secret text
    previous_until bigint
    failing_since bigint
    last_success_at bigint
    created_at bigint NOT NULL
    updated_at bigint NOT NULL
    version bigint NOT NULL DEFAULT 1
    last_failure_at bigint
    PRIMARY KEY (id)
    FOREIGN KEY (server_id) REFERENCES servers(id)
    CREATE INDEX webhooks_by_server ON public.webhooks USING btree (server_id)

FUNCTION event_xact() AS SELECT pg_current_xact_id()::text::bigint + 0::bigint
FUNCTION note_setup_change() AS BEGIN NEW.changed_xact := event_xact(); RETURN NEW; END
FUNCTION settled_xact() AS SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + 0::bigint
