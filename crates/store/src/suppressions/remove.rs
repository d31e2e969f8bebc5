//! Removes suppressions, by address or when they have expired.

use std::collections::HashSet;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, Timestamp};

use super::add::{ROWS_PER_TRANSACTION, describe_count};
use super::record::{address_key, erased_key};
use crate::error::StoreError;
use crate::sql::{Sql, storable, to_json};
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Removes the suppression of an address; returns whether the address was suppressed.
    pub async fn remove_suppression(&self, server_id: ServerId, address: String) -> Result<bool> {
        Ok(self.remove_suppressions(server_id, vec![address]).await?.contains(&true))
    }

    /// Removes many suppressions. Returns, in the same order, whether each address was suppressed. Not atomic.
    pub async fn remove_suppressions(
        &self,
        server_id: ServerId,
        mut addresses: Vec<String>,
    ) -> Result<Vec<bool>> {
        let mut removed = Vec::with_capacity(addresses.len());
        while !addresses.is_empty() {
            let rest = addresses.split_off(addresses.len().min(ROWS_PER_TRANSACTION));
            let chunk = std::mem::replace(&mut addresses, rest);
            let now = self.clock.now();
            let write = self.write_described(move |sql| {
                Box::pin(async move {
                    let removed = remove(sql, server_id, chunk, now).await?;
                    let count = removed.iter().filter(|removed| **removed).count();
                    Ok((removed, describe_count("removed", count)))
                })
            });
            removed.extend(write.await?);
        }
        Ok(removed)
    }

    /// Removes expired suppressions, at most `limit`; returns how many.
    pub async fn remove_expired_suppressions(&self, limit: usize) -> Result<u64> {
        let now = self.clock.now();
        // Usually no suppression has expired, and the writer is not needed.
        if !self.read(move |sql| Box::pin(has_expired(sql, now))).await? {
            return Ok(0);
        }
        let limit = limit as i64;
        self.execute(
            "DELETE FROM suppressions WHERE expires_at <= $1 AND (server_id, address) IN (
             SELECT server_id, address FROM suppressions WHERE expires_at <= $1
             ORDER BY expires_at, server_id, address LIMIT $2)",
            vec![now.into(), limit.into()],
        )
        .await
    }
}

/// Removes suppressions; returns, in the same order, whether each address was suppressed.
pub(crate) async fn remove(
    sql: &Sql<'_>,
    server_id: ServerId,
    addresses: Vec<String>,
    now: Timestamp,
) -> Result<Vec<bool>, StoreError> {
    let keys: Vec<String> =
        addresses.iter().map(|address| storable(&address_key(address)).into_owned()).collect();
    let text = if sql.is_sqlite() {
        "DELETE FROM suppressions
         WHERE server_id = $1 AND address IN (SELECT value FROM json_each($2))
             AND (expires_at IS NULL OR expires_at > $3)
         RETURNING address"
    } else {
        "DELETE FROM suppressions
         WHERE server_id = $1 AND address = ANY (ARRAY (SELECT jsonb_array_elements_text($2::text::jsonb)))
             AND (expires_at IS NULL OR expires_at > $3)
         RETURNING address"
    };
    let erased_keys: Vec<String> = keys.iter().map(|key| erased_key(server_id, key)).collect();
    let all_keys: Vec<&String> = keys.iter().chain(&erased_keys).collect();
    let removed = sql.query(text, &[server_id.0.into(), to_json(&all_keys).into(), now.into()]).await?;
    let mut removed = removed.iter().map(|row| row.text(0)).collect::<Result<HashSet<_>, _>>()?;
    let is_removed = |(key, erased)| removed.remove(key) | removed.remove(erased);
    Ok(keys.iter().zip(&erased_keys).map(is_removed).collect())
}

pub(crate) async fn has_expired(sql: &Sql<'_>, now: Timestamp) -> Result<bool, StoreError> {
    let text = "SELECT server_id FROM suppressions WHERE expires_at <= $1 LIMIT 1";
    Ok(sql.query_opt(text, &[now.into()]).await?.is_some())
}
