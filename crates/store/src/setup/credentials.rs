//! Credentials: create, find, count, list, revoke, rotate, remove, record their use.

use std::fmt;

use ipnet::IpNet;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, CredentialId, Scope, ServerId, ServerMode, Timestamp};

use super::servers;
use super::servers::ServerTracking;
use crate::accept::{AccountLimits, account_periods};
use crate::error::StoreError;
use crate::sql::{Row, Sql, to_json};
use crate::{RemovalProgress, Result, Store};

/// Maximum number of revoked credentials removed in one transaction.
const CREDENTIALS_PER_TRANSACTION: i64 = 500;

/// SHA-256 of an API key or secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}

#[derive(Debug, Clone)]
pub struct NewCredential {
    pub server_id: ServerId,
    pub name: String,
    pub key_hash: KeyHash,
    pub secret_hash: KeyHash,
    pub scope: Scope,
    /// Networks the key may be used from; empty for all.
    pub allow: Vec<IpNet>,
    /// Whether messages accepted with this credential are held.
    pub hold: bool,
    /// Whether messages accepted with this credential are in test mode: stored, but never queued.
    pub test: bool,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub id: CredentialId,
    pub server_id: ServerId,
    pub name: String,
    pub key_hash: KeyHash,
    pub secret_hash: KeyHash,
    pub scope: Scope,
    pub allow: Vec<IpNet>,
    pub hold: bool,
    pub test: bool,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The credential that replaced this one by rotation.
    pub replaced_by: Option<CredentialId>,
    /// Incremented by every change.
    pub version: i64,
    pub updated_at: Timestamp,
}

/// Everything that a call needs about its key, read at once.
#[derive(Debug, Clone)]
pub struct CredentialAccess {
    pub credential: Credential,
    pub account_id: AccountId,
    pub mode: ServerMode,
    /// Why the server or its account is suspended or deleted, if it is.
    pub suspended_reason: Option<String>,
    /// The server's own limit of messages an hour.
    pub hourly_limit: Option<u32>,
    /// Limits of the server's account.
    pub account_limits: Option<AccountLimits>,
    pub tracking: ServerTracking,
}

/// A query for credentials.
macro_rules! credentials {
    ($rest:literal) => {
        concat!(
            "SELECT id, server_id, name, key_hash, secret_hash, scope, allow, hold, test, expires_at, revoked_at,
                    last_used_at, created_at, replaced_by, version, updated_at
             FROM credentials ",
            $rest
        )
    };
}

#[boxed_futures]
impl Store {
    /// Returns the stored credential. A separate read could fail, and then the key in clear text, which only the caller
    /// holds, would be lost.
    pub async fn create_credential(&self, new: NewCredential) -> Result<Credential> {
        let now = self.clock.now();
        self.write(move |sql| {
            Box::pin(async move {
                let id = create(sql, new, now).await?;
                read_created(sql, id).await
            })
        })
        .await
    }

    /// Creates a credential with a login (a user name for SMTP), in lower case. `Conflict` if another credential has
    /// the login.
    pub async fn create_credential_with_login(
        &self,
        new: NewCredential,
        login: String,
    ) -> Result<Credential> {
        let now = self.clock.now();
        self.write(move |sql| {
            Box::pin(async move {
                let id = create_with_login(sql, new, login, now).await?;
                read_created(sql, id).await
            })
        })
        .await
    }

    /// Hashes of key and secret of the login's credential, and of the older credential that it replaced by rotation.
    pub async fn list_hashes_of_login(&self, login: String) -> Result<Vec<(KeyHash, KeyHash)>> {
        self.read(move |sql| Box::pin(list_hashes_of_login(sql, login))).await
    }

    /// Every login and its credential.
    pub async fn list_logins(&self) -> Result<Vec<(CredentialId, String)>> {
        self.read(move |sql| Box::pin(list_logins(sql))).await
    }

    /// Credentials of a server that are neither revoked nor expired; counts up to `max`.
    pub async fn count_credentials(&self, server_id: ServerId, max: usize) -> Result<usize> {
        let text =
            "SELECT count(*) FROM (SELECT 1 FROM credentials WHERE server_id = $1 AND revoked_at IS NULL
                        AND (expires_at IS NULL OR expires_at > $2) LIMIT $3) c";
        let params = vec![server_id.0.into(), self.clock.now().into(), (max as i64).into()];
        let count = self.fetch_opt(text, params, |row| row.int(0)).await?;
        Ok(count.unwrap_or(0) as usize)
    }

    /// The login of a credential that has one.
    pub async fn find_login_of(&self, id: CredentialId) -> Result<Option<String>> {
        let text = "SELECT login FROM logins WHERE credential_id = $1";
        self.fetch_opt(text, vec![id.0.into()], |row| row.text(0)).await
    }

    pub async fn find_credential_access(&self, key: KeyHash) -> Result<Option<CredentialAccess>> {
        self.read(move |sql| Box::pin(find_access(sql, key))).await
    }

    pub async fn find_credential(&self, id: CredentialId) -> Result<Option<Credential>> {
        self.read(move |sql| Box::pin(find(sql, id))).await
    }

    /// All credentials, or those of one server.
    pub async fn list_credentials(&self, server_id: Option<ServerId>) -> Result<Vec<Credential>> {
        self.read(move |sql| Box::pin(list(sql, server_id))).await
    }

    /// Credentials that are bound to networks instead of a secret.
    pub async fn list_address_credentials(&self) -> Result<Vec<Credential>> {
        self.read(move |sql| Box::pin(list_of_addresses(sql))).await
    }

    pub async fn revoke_credential(&self, id: CredentialId) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(revoke(sql, id, now))).await
    }

    /// Adds `new` next to `old`, which stays valid until `old_expires_at` or its own earlier expiry. `NotFound` if
    /// `old` does not exist, is revoked or was already replaced.
    pub async fn rotate_credential(
        &self,
        old: CredentialId,
        old_expires_at: Timestamp,
        new: NewCredential,
    ) -> Result<Credential> {
        let now = self.clock.now();
        self.write(move |sql| {
            Box::pin(async move {
                let id = rotate(sql, old, old_expires_at, new, now).await?;
                read_created(sql, id).await
            })
        })
        .await
    }

    /// Removes some credentials that were revoked before this time.
    pub async fn remove_revoked_credentials(&self, before: Timestamp) -> Result<RemovalProgress> {
        let text = "DELETE FROM credentials WHERE revoked_at < $1 AND id IN
                        (SELECT id FROM credentials WHERE revoked_at < $1 ORDER BY revoked_at LIMIT $2)";
        let rows = self.execute(text, vec![before.into(), CREDENTIALS_PER_TRANSACTION.into()]).await?;
        Ok(RemovalProgress { rows, has_more: rows == CREDENTIALS_PER_TRANSACTION as u64 })
    }

    /// Stores when credentials were last used; never replaces a time by an earlier one.
    pub async fn touch_credentials(&self, used: Vec<(CredentialId, Timestamp)>) -> Result<()> {
        self.write(move |sql| Box::pin(touch(sql, used))).await
    }
}

pub(crate) async fn create(
    sql: &Sql<'_>,
    new: NewCredential,
    now: Timestamp,
) -> Result<CredentialId, StoreError> {
    let row = sql
        .query_opt(
            "INSERT INTO credentials
             (server_id, name, key_hash, secret_hash, scope, allow, hold, test, expires_at, created_at, updated_at, account_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10,
                     coalesce((SELECT account_id FROM servers WHERE id = $1), 0)) RETURNING id",
            &[
                new.server_id.0.into(),
                new.name.into(),
                new.key_hash.0.to_vec().into(),
                new.secret_hash.0.to_vec().into(),
                new.scope.as_str().into(),
                to_json(&new.allow).into(),
                new.hold.into(),
                new.test.into(),
                new.expires_at.into(),
                now.into(),
            ],
        )
        .await?;
    Ok(CredentialId(row.ok_or(StoreError::Conflict)?.int(0)?))
}

/// `Conflict` if another credential has the login.
pub(crate) async fn create_with_login(
    sql: &Sql<'_>,
    new: NewCredential,
    login: String,
    now: Timestamp,
) -> Result<CredentialId, StoreError> {
    let id = create(sql, new, now).await?;
    let row = sql
        .query_opt(
            "INSERT INTO logins (login, credential_id) VALUES ($1, $2) RETURNING credential_id",
            &[login.into(), id.0.into()],
        )
        .await?;
    row.map(|_| id).ok_or(StoreError::Conflict)
}

/// Hashes of key and secret for a login: of its credential, and of the older credential that this credential replaced
/// by rotation and that may still be valid.
pub(crate) async fn list_hashes_of_login(
    sql: &Sql<'_>,
    login: String,
) -> Result<Vec<(KeyHash, KeyHash)>, StoreError> {
    let rows = sql
        .query(
            // Two look-ups by index; `OR` would scan all credentials.
            "SELECT c.key_hash, c.secret_hash, c.id FROM logins l JOIN credentials c ON c.id = l.credential_id
             WHERE l.login = $1
             UNION ALL
             SELECT c.key_hash, c.secret_hash, c.id FROM logins l JOIN credentials c ON c.replaced_by = l.credential_id
             WHERE l.login = $1 ORDER BY 3 DESC",
            &[login.into()],
        )
        .await?;
    rows.into_iter().map(|mut row| Ok((read_hash(&mut row, 0)?, read_hash(&mut row, 1)?))).collect()
}

pub(crate) async fn list_logins(sql: &Sql<'_>) -> Result<Vec<(CredentialId, String)>, StoreError> {
    let rows = sql.query("SELECT credential_id, login FROM logins ORDER BY credential_id", &[]).await?;
    rows.into_iter().map(|row| Ok((CredentialId(row.int(0)?), row.text(1)?))).collect()
}

/// Everything that a call needs about its key, by the key's hash.
pub(crate) async fn find_access(sql: &Sql<'_>, key: KeyHash) -> Result<Option<CredentialAccess>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT c.id, c.server_id, c.name, c.key_hash, c.secret_hash, c.scope, c.allow, c.hold, c.test,
                    c.expires_at, c.revoked_at, c.last_used_at, c.created_at, c.replaced_by, c.version, c.updated_at,
                    s.mode, coalesce(s.suspended_reason, a.suspended_reason,
                                     CASE WHEN s.delete_at IS NOT NULL OR a.delete_at IS NOT NULL THEN 'deleted' END),
                    s.hourly_limit,
                    s.track_opens, s.track_clicks, s.track_excluded_hosts, s.account_id, a.hourly_limit, a.daily_limit,
                    a.monthly_limit
             FROM credentials c JOIN servers s ON s.id = c.server_id JOIN accounts a ON a.id = s.account_id
             WHERE c.key_hash = $1",
            &[key.0.to_vec().into()],
        )
        .await?;
    let Some(mut row) = row else { return Ok(None) };
    Ok(Some(CredentialAccess {
        mode: row.parsed(16, ServerMode::parse)?,
        suspended_reason: row.text_opt(17)?,
        hourly_limit: row.int_opt(18)?.map(|limit| limit as u32),
        tracking: servers::read_tracking(&row, 19)?,
        account_id: AccountId(row.int(22)?),
        account_limits: account_periods::read(&row, 22)?,
        credential: read(&mut row)?,
    }))
}

pub(crate) async fn find(sql: &Sql<'_>, id: CredentialId) -> Result<Option<Credential>, StoreError> {
    let row = sql.query_opt(credentials!("WHERE id = $1"), &[id.0.into()]).await?;
    row.map(|mut row| read(&mut row)).transpose()
}

/// Reads a credential that the same transaction created.
async fn read_created(sql: &Sql<'_>, id: CredentialId) -> Result<Credential, StoreError> {
    find(sql, id).await?.ok_or_else(|| StoreError::Internal(format!("the new credential {id} is missing")))
}

/// All credentials, or those of one server.
pub(crate) async fn list(sql: &Sql<'_>, server_id: Option<ServerId>) -> Result<Vec<Credential>, StoreError> {
    // Two SQL texts, so that the credentials of one server are found by index.
    let rows = match server_id {
        Some(id) => sql.query(credentials!("WHERE server_id = $1 ORDER BY id"), &[id.0.into()]).await?,
        None => sql.query(credentials!("ORDER BY id"), &[]).await?,
    };
    rows.into_iter().map(|mut row| read(&mut row)).collect()
}

async fn list_of_addresses(sql: &Sql<'_>) -> Result<Vec<Credential>, StoreError> {
    let rows = sql.query(credentials!("WHERE scope = 'address' ORDER BY id"), &[]).await?;
    rows.into_iter().map(|mut row| read(&mut row)).collect()
}

/// Revokes a credential. Its login can then be used for another credential. Revoking twice changes nothing.
pub(crate) async fn revoke(sql: &Sql<'_>, id: CredentialId, now: Timestamp) -> Result<(), StoreError> {
    sql.execute("DELETE FROM logins WHERE credential_id = $1", &[id.0.into()]).await?;
    sql.execute_one(
        "UPDATE credentials SET revoked_at = coalesce(revoked_at, $2),
             version = version + CASE WHEN revoked_at IS NULL THEN 1 ELSE 0 END,
             updated_at = CASE WHEN revoked_at IS NULL THEN $2 ELSE updated_at END
         WHERE id = $1",
        &[id.0.into(), now.into()],
    )
    .await
}

/// Adds `new` next to the old credential, which stays valid until `old_expires_at` or its own earlier expiry. A
/// credential is replaced once.
pub(crate) async fn rotate(
    sql: &Sql<'_>,
    old: CredentialId,
    old_expires_at: Timestamp,
    new: NewCredential,
    now: Timestamp,
) -> Result<CredentialId, StoreError> {
    let new = create(sql, new, now).await?;
    sql.execute_one(
        "UPDATE credentials SET updated_at = $3, version = version + 1, replaced_by = $4,
         expires_at = CASE WHEN expires_at IS NULL OR expires_at > $2 THEN $2 ELSE expires_at END
         WHERE id = $1 AND revoked_at IS NULL AND replaced_by IS NULL",
        &[old.0.into(), old_expires_at.into(), now.into(), new.0.into()],
    )
    .await?;
    sql.execute(
        "UPDATE logins SET credential_id = $2 WHERE credential_id = $1",
        &[old.0.into(), new.0.into()],
    )
    .await?;
    Ok(new)
}

/// Stores when credentials were last used; never replaces a time by an earlier one. The caller collects uses and stores
/// them together, so that requests do not wait.
pub(crate) async fn touch(sql: &Sql<'_>, used: Vec<(CredentialId, Timestamp)>) -> Result<(), StoreError> {
    let mut used = used;
    // In a fixed order, to avoid deadlocks between nodes.
    used.sort_unstable();
    for (id, at) in used {
        sql.execute(
            "UPDATE credentials SET last_used_at = $2
             WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)",
            &[id.0.into(), at.into()],
        )
        .await?;
    }
    Ok(())
}

pub(super) fn read(row: &mut Row) -> Result<Credential, StoreError> {
    Ok(Credential {
        id: CredentialId(row.int(0)?),
        server_id: ServerId(row.int(1)?),
        name: row.text(2)?,
        key_hash: read_hash(row, 3)?,
        secret_hash: read_hash(row, 4)?,
        scope: row.parsed(5, Scope::parse)?,
        allow: row.json(6)?,
        hold: row.flag(7)?,
        test: row.flag(8)?,
        expires_at: row.time_opt(9)?,
        revoked_at: row.time_opt(10)?,
        last_used_at: row.time_opt(11)?,
        created_at: row.time(12)?,
        replaced_by: row.int_opt(13)?.map(CredentialId),
        version: row.int(14)?,
        updated_at: row.time(15)?,
    })
}

pub(super) fn read_hash(row: &mut Row, at: usize) -> Result<KeyHash, StoreError> {
    let bytes = row.take_blob(at)?;
    bytes.try_into().map(KeyHash).map_err(|_| StoreError::Internal("a key hash is not 32 bytes".into()))
}
