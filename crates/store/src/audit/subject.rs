//! Subjects of audit entries, and their rows as JSON without secrets.

use std::net::IpAddr;

use postroad_model::{
    AccountId, AccountKeyId, CredentialId, DomainId, DomainLinkId, DomainName, GateScope, InvitationId,
    PoolId, ServerId, SourceId, TemplateId, Timestamp, UserId, WebhookId,
};
use serde_json::{Map, Value, json};

use super::INSTALLATION;
use crate::domains::DomainOwner;
use crate::error::StoreError;
use crate::setup::KeyHash;
use crate::sql::{self, Row, Sql};
use crate::webhooks::WebhookSecret;

/// The object of a change. New objects have no id yet, so they are identified by another value.
#[derive(Debug, Clone)]
pub enum AuditSubject {
    Account(AccountId),
    /// By its name; the newest if several have the name.
    NewAccount(String),
    Server(ServerId),
    NewServer(AccountId, String),
    Credential(CredentialId),
    NewCredential(KeyHash),
    AccountKey(AccountKeyId),
    NewAccountKey(KeyHash),
    Domain(DomainId),
    NewDomain(DomainOwner, DomainName),
    DomainLink(DomainLinkId),
    /// By the hash of its secret; the secret is not shown.
    NewDomainLink(KeyHash),
    Pool(PoolId),
    NewPool(String),
    Source(SourceId),
    NewSource(IpAddr),
    Webhook(ServerId, WebhookId),
    /// By its secret; the secret is not shown.
    NewWebhook(ServerId, WebhookSecret),
    Template(ServerId, TemplateId),
    /// By its name, which is unique for the server.
    NewTemplate(ServerId, String),
    /// The suppression list of a server: entries contain the number of changed addresses, but no address.
    Suppressions(ServerId),
    /// Messages of a server: entries contain ids or a number, but neither recipients nor contents.
    Messages(ServerId),
    /// The request inspector of a server: entries contain what was done, but neither its URL nor requests.
    Inspector(ServerId),
    User(UserId),
    /// By the address in lower case.
    NewUser(String),
    Invitation(InvitationId),
    NewInvitation(AccountId, String),
    Setting(&'static str),
    /// A gate that a person sets.
    Gate(GateScope),
}

/// A subject at one point in time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Snapshot {
    pub(super) account_id: AccountId,
    pub(super) id: Option<i64>,
    pub(super) fields: Value,
}

// Names that entries use for the columns that `AuditSubject::find` selects after the account's id and the subject's id,
// in the order of these columns.

const ACCOUNT_FIELDS: &[&str] = &[
    "name",
    "suspended_reason",
    "delete_at",
    "hourly_limit",
    "daily_limit",
    "monthly_limit",
    "send_rate",
    "servers_max",
    "domains_max",
    "webhooks_max",
    "users_max",
    "retention_bodies",
    "retention_messages",
];
const SERVER_FIELDS: &[&str] = &[
    "account",
    "name",
    "mode",
    "suspended_reason",
    "suspended_by",
    "pool",
    "send_rate",
    "hourly_limit",
    "track_opens",
    "track_clicks",
    "track_excluded_hosts",
    "retention_bodies",
    "retention_messages",
    "mode_ceiling",
    "send_rate_ceiling",
    "hourly_limit_ceiling",
    "retention_bodies_ceiling",
    "retention_messages_ceiling",
    "account_mode_ceiling",
    "account_send_rate_ceiling",
    "account_hourly_limit_ceiling",
    "account_retention_bodies_ceiling",
    "account_retention_messages_ceiling",
    "delete_at",
];
const CREDENTIAL_FIELDS: &[&str] =
    &["server", "name", "scope", "allow", "hold", "test", "expires_at", "revoked_at", "replaced_by"];
const ACCOUNT_KEY_FIELDS: &[&str] = &["name", "scopes", "allow", "expires_at", "revoked_at"];
const DOMAIN_FIELDS: &[&str] =
    &["name", "server", "verified_by", "track_opens", "track_clicks", "track_host", "newest_key"];
const DOMAIN_LINK_FIELDS: &[&str] = &["domain", "expires_at"];
const POOL_FIELDS: &[&str] = &["name", "shared"];
const SOURCE_FIELDS: &[&str] =
    &["address", "pool", "helo", "weight", "warmup_started_at", "warmup_paused_reason"];
const WEBHOOK_FIELDS: &[&str] = &["server", "url", "events", "format", "enabled", "secret_rotated_until"];
const TEMPLATE_FIELDS: &[&str] = &["server", "alias", "name", "kind", "latest", "published"];
const SERVER_ID_FIELDS: &[&str] = &["server"];
const USER_FIELDS: &[&str] = &["email", "name", "role", "operator", "password_changed_at", "two_factor"];
const INVITATION_FIELDS: &[&str] = &["email", "role", "operator", "expires_at"];
const SETTING_FIELDS: &[&str] = &["value"];
const GATE_FIELDS: &[&str] = &["scope", "key", "action", "per_minute", "reason", "ends_at"];

/// Fields whose columns hold 0 or 1.
const FLAG_FIELDS: [&str; 8] =
    ["hold", "test", "track_opens", "track_clicks", "shared", "operator", "two_factor", "enabled"];

impl AuditSubject {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Account(_) | Self::NewAccount(_) => "account",
            Self::Server(_) | Self::NewServer(..) => "server",
            Self::Credential(_) | Self::NewCredential(_) => "credential",
            Self::AccountKey(_) | Self::NewAccountKey(_) => "account_key",
            Self::Domain(_) | Self::NewDomain(..) => "domain",
            Self::DomainLink(_) | Self::NewDomainLink(_) => "domain_link",
            Self::Pool(_) | Self::NewPool(_) => "ip_pool",
            Self::Source(_) | Self::NewSource(_) => "address",
            Self::Webhook(..) | Self::NewWebhook(..) | Self::Inspector(_) => "webhook",
            Self::Template(..) | Self::NewTemplate(..) => "template",
            Self::Suppressions(_) => "suppressions",
            Self::Messages(_) => "messages",
            Self::User(_) | Self::NewUser(_) => "user",
            Self::Invitation(_) | Self::NewInvitation(..) => "invitation",
            Self::Setting(_) => "setting",
            Self::Gate(_) => "gate",
        }
    }

    /// The subject now; `None` if it does not exist.
    pub(super) async fn snapshot(&self, sql: &Sql<'_>) -> Result<Option<Snapshot>, StoreError> {
        if matches!(self, Self::Suppressions(_) | Self::Messages(_) | Self::Inspector(_)) {
            return Ok(None);
        }
        let (row, fields) = self.find(sql).await?;
        row.map(|row| read(&row, fields)).transpose()
    }

    /// The subject now, with the description of a change that its row does not show.
    pub(super) async fn snapshot_with(
        &self,
        sql: &Sql<'_>,
        changed: Map<String, Value>,
    ) -> Result<Option<Snapshot>, StoreError> {
        let (row, fields) = self.find(sql).await?;
        let snapshot = row.map(|row| read(&row, fields)).transpose()?;
        Ok(snapshot.map(|mut snapshot| {
            if let Some(fields) = snapshot.fields.as_object_mut() {
                fields.extend(changed);
            }
            snapshot
        }))
    }

    async fn find(&self, sql: &Sql<'_>) -> Result<(Option<Row>, &'static [&'static str]), StoreError> {
        let (text, params, fields): (&'static str, Vec<sql::Value>, _) = match self {
            Self::Account(id) => (
                "SELECT id, id, name, suspended_reason, delete_at, hourly_limit, daily_limit, monthly_limit, send_rate,
                        servers_max, domains_max, webhooks_max, users_max, retention_bodies, retention_messages
                 FROM accounts WHERE id = $1",
                vec![id.0.into()],
                ACCOUNT_FIELDS,
            ),
            Self::NewAccount(name) => (
                "SELECT id, id, name, suspended_reason, delete_at, hourly_limit, daily_limit, monthly_limit, send_rate,
                        servers_max, domains_max, webhooks_max, users_max, retention_bodies, retention_messages
                 FROM accounts WHERE name = $1 ORDER BY id DESC LIMIT 1",
                vec![name.as_str().into()],
                ACCOUNT_FIELDS,
            ),
            Self::Server(id) => (
                "SELECT account_id, id, account_id, name, mode, suspended_reason,
                        CASE WHEN suspended_reason IS NOT NULL THEN coalesce(suspended_by, 'operator') END, pool_id, send_rate, hourly_limit, track_opens,
                        track_clicks, track_excluded_hosts, retention_bodies, retention_messages, mode_ceiling,
                        send_rate_ceiling, hourly_limit_ceiling, retention_bodies_ceiling, retention_messages_ceiling,
                        account_mode_ceiling, account_send_rate_ceiling, account_hourly_limit_ceiling,
                        account_retention_bodies_ceiling, account_retention_messages_ceiling, delete_at FROM servers WHERE id = $1",
                vec![id.0.into()],
                SERVER_FIELDS,
            ),
            Self::NewServer(account_id, name) => (
                "SELECT account_id, id, account_id, name, mode, suspended_reason,
                        CASE WHEN suspended_reason IS NOT NULL THEN coalesce(suspended_by, 'operator') END, pool_id, send_rate, hourly_limit, track_opens,
                        track_clicks, track_excluded_hosts, retention_bodies, retention_messages, mode_ceiling,
                        send_rate_ceiling, hourly_limit_ceiling, retention_bodies_ceiling, retention_messages_ceiling,
                        account_mode_ceiling, account_send_rate_ceiling, account_hourly_limit_ceiling,
                        account_retention_bodies_ceiling, account_retention_messages_ceiling, delete_at FROM servers WHERE account_id = $1 AND name = $2",
                vec![account_id.0.into(), name.as_str().into()],
                SERVER_FIELDS,
            ),
            Self::Credential(id) => (
                "SELECT s.account_id, c.id, c.server_id, c.name, c.scope, c.allow, c.hold, c.test, c.expires_at,
                        c.revoked_at, c.replaced_by
                 FROM credentials c JOIN servers s ON s.id = c.server_id WHERE c.id = $1",
                vec![id.0.into()],
                CREDENTIAL_FIELDS,
            ),
            Self::NewCredential(key) => (
                "SELECT s.account_id, c.id, c.server_id, c.name, c.scope, c.allow, c.hold, c.test, c.expires_at,
                        c.revoked_at, c.replaced_by
                 FROM credentials c JOIN servers s ON s.id = c.server_id WHERE c.key_hash = $1",
                vec![key.0.to_vec().into()],
                CREDENTIAL_FIELDS,
            ),
            Self::AccountKey(id) => (
                "SELECT coalesce(account_id, 0), id, name, scopes, allow, expires_at, revoked_at
                 FROM account_keys WHERE id = $1",
                vec![id.0.into()],
                ACCOUNT_KEY_FIELDS,
            ),
            Self::NewAccountKey(key) => (
                "SELECT coalesce(account_id, 0), id, name, scopes, allow, expires_at, revoked_at
                 FROM account_keys WHERE key_hash = $1",
                vec![key.0.to_vec().into()],
                ACCOUNT_KEY_FIELDS,
            ),
            Self::Domain(id) => (
                "SELECT d.account_id, d.id, d.name, d.server_id, d.verified_by, d.track_opens, d.track_clicks,
                        d.track_host, (SELECT max(k.id) FROM domain_keys k WHERE k.domain_id = d.id)
                 FROM domains d WHERE d.id = $1",
                vec![id.0.into()],
                DOMAIN_FIELDS,
            ),
            Self::NewDomain(DomainOwner::Server(server_id), name) => (
                "SELECT d.account_id, d.id, d.name, d.server_id, d.verified_by, d.track_opens, d.track_clicks,
                        d.track_host, (SELECT max(k.id) FROM domain_keys k WHERE k.domain_id = d.id)
                 FROM domains d WHERE d.server_id = $1 AND d.name = $2",
                vec![server_id.0.into(), name.as_str().into()],
                DOMAIN_FIELDS,
            ),
            Self::NewDomain(DomainOwner::Account(account_id), name) => (
                "SELECT d.account_id, d.id, d.name, d.server_id, d.verified_by, d.track_opens, d.track_clicks,
                        d.track_host, (SELECT max(k.id) FROM domain_keys k WHERE k.domain_id = d.id)
                 FROM domains d WHERE d.account_id = $1 AND d.name = $2 AND d.server_id IS NULL",
                vec![account_id.0.into(), name.as_str().into()],
                DOMAIN_FIELDS,
            ),
            Self::DomainLink(id) => (
                "SELECT d.account_id, l.id, d.name, l.expires_at
                 FROM domain_links l JOIN domains d ON d.id = l.domain_id WHERE l.id = $1",
                vec![id.0.into()],
                DOMAIN_LINK_FIELDS,
            ),
            Self::NewDomainLink(token) => (
                "SELECT d.account_id, l.id, d.name, l.expires_at
                 FROM domain_links l JOIN domains d ON d.id = l.domain_id WHERE l.token_hash = $1",
                vec![token.0.to_vec().into()],
                DOMAIN_LINK_FIELDS,
            ),
            Self::Pool(id) => (
                "SELECT coalesce(account_id, 0), id, name, shared FROM pools WHERE id = $1",
                vec![id.0.into()],
                POOL_FIELDS,
            ),
            Self::NewPool(name) => (
                "SELECT coalesce(account_id, 0), id, name, shared FROM pools WHERE name = $1",
                vec![name.as_str().into()],
                POOL_FIELDS,
            ),
            Self::Source(id) => (
                "SELECT coalesce(p.account_id, 0), s.id, s.address, s.pool_id, s.helo, s.weight, s.warmup_started_at,
                        s.warmup_paused_reason
                 FROM sources s JOIN pools p ON p.id = s.pool_id WHERE s.id = $1",
                vec![id.0.into()],
                SOURCE_FIELDS,
            ),
            Self::NewSource(address) => (
                "SELECT coalesce(p.account_id, 0), s.id, s.address, s.pool_id, s.helo, s.weight, s.warmup_started_at,
                        s.warmup_paused_reason
                 FROM sources s JOIN pools p ON p.id = s.pool_id WHERE s.address = $1",
                vec![address.to_string().into()],
                SOURCE_FIELDS,
            ),
            Self::Webhook(server_id, id) => (
                "SELECT s.account_id, w.id, w.server_id, w.url, w.wants, w.format, w.enabled, w.previous_until
                 FROM webhooks w JOIN servers s ON s.id = w.server_id WHERE w.server_id = $1 AND w.id = $2",
                vec![server_id.0.into(), id.0.into()],
                WEBHOOK_FIELDS,
            ),
            Self::NewWebhook(server_id, secret) => (
                "SELECT s.account_id, w.id, w.server_id, w.url, w.wants, w.format, w.enabled, w.previous_until
                 FROM webhooks w JOIN servers s ON s.id = w.server_id WHERE w.server_id = $1 AND w.secret = $2",
                vec![server_id.0.into(), secret.0.as_str().into()],
                WEBHOOK_FIELDS,
            ),
            Self::Template(server_id, id) => (
                "SELECT s.account_id, t.id, t.server_id, t.alias, t.name, t.kind, t.latest, t.published
                 FROM templates t JOIN servers s ON s.id = t.server_id WHERE t.server_id = $1 AND t.id = $2",
                vec![server_id.0.into(), id.0.into()],
                TEMPLATE_FIELDS,
            ),
            Self::NewTemplate(server_id, name) => (
                "SELECT s.account_id, t.id, t.server_id, t.alias, t.name, t.kind, t.latest, t.published
                 FROM templates t JOIN servers s ON s.id = t.server_id
                 WHERE t.server_id = $1 AND t.name = $2 ORDER BY t.id DESC LIMIT 1",
                vec![server_id.0.into(), name.as_str().into()],
                TEMPLATE_FIELDS,
            ),
            Self::Suppressions(id) | Self::Messages(id) | Self::Inspector(id) => (
                "SELECT account_id, CAST(NULL AS BIGINT), id FROM servers WHERE id = $1",
                vec![id.0.into()],
                SERVER_ID_FIELDS,
            ),
            Self::User(id) => (
                "SELECT account_id, id, email, name, role, operator, password_changed_at,
                        CAST(CASE WHEN totp_seed IS NULL THEN 0 ELSE 1 END AS BIGINT) FROM users WHERE id = $1",
                vec![id.0.into()],
                USER_FIELDS,
            ),
            Self::NewUser(email) => (
                "SELECT account_id, id, email, name, role, operator, password_changed_at,
                        CAST(CASE WHEN totp_seed IS NULL THEN 0 ELSE 1 END AS BIGINT) FROM users WHERE email = $1",
                vec![email.as_str().into()],
                USER_FIELDS,
            ),
            Self::Invitation(id) => (
                "SELECT account_id, id, email, role, operator, expires_at FROM invitations WHERE id = $1",
                vec![id.0.into()],
                INVITATION_FIELDS,
            ),
            Self::NewInvitation(account_id, email) => (
                "SELECT account_id, id, email, role, operator, expires_at FROM invitations
                 WHERE account_id = $1 AND email = $2",
                vec![account_id.0.into(), email.as_str().into()],
                INVITATION_FIELDS,
            ),
            Self::Setting(key) => (
                "SELECT CAST(0 AS BIGINT), CAST(NULL AS BIGINT), value FROM settings WHERE key = $1",
                vec![(*key).into()],
                SETTING_FIELDS,
            ),
            // A gate on a server belongs to the server's account, every other gate to the installation.
            Self::Gate(scope) => (
                "SELECT coalesce((SELECT account_id FROM servers WHERE id = $3), 0), CAST(NULL AS BIGINT), scope_kind,
                        scope_key, action, per_minute, reason, ends_at
                 FROM gates WHERE scope_kind = $1 AND scope_key = $2 AND automatic = 0",
                vec![scope.kind().into(), scope.key().into(), gated_server(scope).into()],
                GATE_FIELDS,
            ),
        };
        Ok((sql.query_opt(text, &params).await?, fields))
    }
}

/// Id of the server that a gate is on; 0 for other gates.
fn gated_server(scope: &GateScope) -> i64 {
    match scope {
        GateScope::Server(id) => id.0,
        _ => 0,
    }
}

fn read(row: &Row, names: &'static [&'static str]) -> Result<Snapshot, StoreError> {
    let mut fields = Map::new();
    for (at, name) in names.iter().enumerate() {
        fields.insert((*name).to_owned(), column_as_json(name, row.value(at + 2)));
    }
    let account_id = row.int_opt(0)?.map_or(INSTALLATION, AccountId);
    Ok(Snapshot { account_id, id: row.int_opt(1)?, fields: Value::Object(fields) })
}

/// A column as the log shows it: times as text, flags as booleans, lists as lists.
fn column_as_json(name: &str, value: &sql::Value) -> Value {
    match value {
        sql::Value::Int(int) if name.ends_with("_at") || name.ends_with("_until") => {
            Timestamp::from_micros(*int).to_rfc3339().into()
        }
        sql::Value::Int(int) if FLAG_FIELDS.contains(&name) => (*int != 0).into(),
        sql::Value::Int(int) => (*int).into(),
        sql::Value::Text(text) if text.starts_with('[') => {
            serde_json::from_str(text).unwrap_or_else(|_| json!(text))
        }
        sql::Value::Text(text) => text.as_str().into(),
        // None of these columns is a blob.
        sql::Value::Null | sql::Value::Blob(_) => Value::Null,
    }
}
