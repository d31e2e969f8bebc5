//! Idempotency keys of calls that create something: a repeated call finds the object that the first call created.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, Timestamp};

use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// Keys expire this long after their first use.
const KEY_LIFETIME: Duration = Duration::from_hours(24);

/// First use of an idempotency key: the fingerprint of the call, and the object that the call created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creation {
    pub fingerprint: Vec<u8>,
    pub subject_id: i64,
}

/// An idempotency key that is being used.
#[derive(Debug, Clone)]
pub struct NewCreation {
    pub account_id: AccountId,
    pub key: String,
    pub fingerprint: [u8; 32],
}

#[boxed_futures]
impl Store {
    /// `None` for a key that was not used in the last 24 hours.
    pub async fn find_creation(&self, account_id: AccountId, key: String) -> Result<Option<Creation>> {
        let since = self.clock.now().minus(KEY_LIFETIME);
        self.read(move |sql| Box::pin(find(sql, account_id, key, since))).await
    }

    /// Removes expired keys, at most `limit`; returns how many.
    pub async fn purge_creations(&self, limit: usize) -> Result<u64> {
        let before = self.clock.now().minus(KEY_LIFETIME);
        self.execute(
            "DELETE FROM creations WHERE (account_id, key) IN
             (SELECT account_id, key FROM creations WHERE created_at < $1 ORDER BY created_at LIMIT $2)",
            vec![before.into(), (limit as i64).into()],
        )
        .await
    }
}

/// `Conflict` if the key is already in use.
pub(crate) async fn insert(
    sql: &Sql<'_>,
    new: &NewCreation,
    subject_id: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let inserted = sql
        .execute(
            "INSERT INTO creations (account_id, key, fingerprint, subject_id, created_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (account_id, key) DO UPDATE
             SET fingerprint = excluded.fingerprint, subject_id = excluded.subject_id, created_at = excluded.created_at
             WHERE creations.created_at < $6",
            &[
                new.account_id.0.into(),
                new.key.as_str().into(),
                new.fingerprint.to_vec().into(),
                subject_id.into(),
                now.into(),
                now.minus(KEY_LIFETIME).into(),
            ],
        )
        .await?;
    if inserted == 0 { Err(StoreError::Conflict) } else { Ok(()) }
}

async fn find(
    sql: &Sql<'_>,
    account_id: AccountId,
    key: String,
    since: Timestamp,
) -> Result<Option<Creation>, StoreError> {
    let text = "SELECT fingerprint, subject_id FROM creations WHERE account_id = $1 AND key = $2 AND created_at >= $3";
    let row = sql.query_opt(text, &[account_id.0.into(), key.into(), since.into()]).await?;
    row.map(|row| Ok(Creation { fingerprint: row.blob(0)?, subject_id: row.int(1)? })).transpose()
}
