//! Opens inspectors and removes them.

use std::cmp::Reverse;
use std::collections::HashMap;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, ServerId, Timestamp};

use super::record::NewInspector;
use crate::error::StoreError;
use crate::retention::RemovalProgress;
use crate::sql::Sql;
use crate::{ChangeDescription, Result, Store};

/// Maximum number of expired inspectors removed in one transaction; each has up to 1 MiB of requests.
const INSPECTORS_PER_TRANSACTION: i64 = 10;

/// An inspector that a new one may replace.
#[derive(Debug, Clone, Copy)]
struct OpenInspector {
    server_id: ServerId,
    account_id: AccountId,
    created_at: Timestamp,
}

#[boxed_futures]
impl Store {
    /// Opens the inspector of a server. Returns `false` if the server already has one that is open, which stays as it
    /// is, unless its token is `new.unreadable_token`: then it is replaced. If `inspectors_max` are open, the new
    /// inspector replaces the oldest one of the account that has the most. `NotFound` without the server.
    pub async fn open_inspector(&self, new: NewInspector, inspectors_max: usize) -> Result<bool> {
        let (server_id, now) = (new.server_id, self.clock.now());
        let is_new = self
            .write_described(move |sql| {
                Box::pin(async move {
                    let is_new = open(sql, new, inspectors_max, now).await?;
                    let opened = || ChangeDescription::from_iter([("inspector".to_owned(), "opened".into())]);
                    Ok((is_new, is_new.then(opened)))
                })
            })
            .await?;
        if is_new {
            self.inspector_notifier.notify([server_id]);
        }
        Ok(is_new)
    }

    /// Removes expired inspectors with their requests, some at a time.
    pub async fn remove_expired_inspectors(&self) -> Result<RemovalProgress> {
        let now = self.clock.now();
        let rows = self.write(move |sql| Box::pin(remove_expired(sql, now))).await?;
        Ok(RemovalProgress { rows, has_more: rows == INSPECTORS_PER_TRANSACTION as u64 })
    }
}

async fn open(
    sql: &Sql<'_>,
    new: NewInspector,
    inspectors_max: usize,
    now: Timestamp,
) -> Result<bool, StoreError> {
    lock_inspectors(sql).await?;
    let server_id = new.server_id;
    let text = "INSERT INTO inspectors (server_id, account_id, token_hash, token, expires_at, count, changed,
                    created_at)
                VALUES ($1, $2, $3, $4, $5, 0, $6, $6)
                ON CONFLICT (server_id) DO UPDATE SET account_id = excluded.account_id,
                    token_hash = excluded.token_hash, token = excluded.token, expires_at = excluded.expires_at,
                    count = 0, changed = inspectors.changed + 1, created_at = excluded.created_at
                WHERE inspectors.expires_at <= $6 OR inspectors.token = $7
                RETURNING server_id";
    let params = [
        server_id.0.into(),
        new.account_id.0.into(),
        new.token_hash.0.to_vec().into(),
        new.sealed_token.into(),
        new.expires_at.into(),
        now.into(),
        new.unreadable_token.into(),
    ];
    if sql.query_opt(text, &params).await?.is_none() {
        return Ok(false);
    }
    // The requests of the server's former inspector.
    let text = "DELETE FROM inspector_requests WHERE server_id = $1";
    sql.with_secure_delete(sql.execute(text, &[server_id.0.into()])).await?;
    remove_beyond_max(sql, server_id, inspectors_max, now).await?;
    Ok(true)
}

/// Removes other inspectors until there are at most `inspectors_max`.
async fn remove_beyond_max(
    sql: &Sql<'_>,
    server_id: ServerId,
    inspectors_max: usize,
    now: Timestamp,
) -> Result<(), StoreError> {
    let text =
        "SELECT server_id, account_id, created_at FROM inspectors WHERE expires_at > $1 AND server_id <> $2";
    let mut others = Vec::new();
    for row in sql.query(text, &[now.into(), server_id.0.into()]).await? {
        others.push(OpenInspector {
            server_id: ServerId(row.int(0)?),
            account_id: AccountId(row.int(1)?),
            created_at: row.time(2)?,
        });
    }
    while others.len() >= inspectors_max
        && let Some(oldest) = find_replaceable(&others)
    {
        let text = "DELETE FROM inspectors WHERE server_id = $1";
        sql.with_secure_delete(sql.execute(text, &[oldest.0.into()])).await?;
        others.retain(|other| other.server_id != oldest);
    }
    Ok(())
}

/// The oldest inspector of the account that has the most inspectors.
fn find_replaceable(others: &[OpenInspector]) -> Option<ServerId> {
    let mut counts: HashMap<AccountId, usize> = HashMap::new();
    for other in others {
        *counts.entry(other.account_id).or_default() += 1;
    }
    let count = |other: &OpenInspector| counts.get(&other.account_id).copied().unwrap_or_default();
    let oldest = others.iter().min_by_key(|other| (Reverse(count(other)), other.created_at, other.server_id));
    oldest.map(|oldest| oldest.server_id)
}

async fn remove_expired(sql: &Sql<'_>, now: Timestamp) -> Result<u64, StoreError> {
    lock_inspectors(sql).await?;
    let text = "DELETE FROM inspectors WHERE expires_at <= $1 AND server_id IN
                    (SELECT server_id FROM inspectors WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";
    sql.with_secure_delete(sql.execute(text, &[now.into(), INSPECTORS_PER_TRANSACTION.into()])).await
}

/// On PostgreSQL, nodes open and remove inspectors one after the other, so that the maximum number is exact and nodes
/// do not lock rows in different orders.
async fn lock_inspectors(sql: &Sql<'_>) -> Result<(), StoreError> {
    if !sql.is_sqlite() {
        sql.query("SELECT CAST(pg_advisory_xact_lock(3, 0) AS TEXT)", &[]).await?;
    }
    Ok(())
}
