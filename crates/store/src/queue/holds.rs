//! Holds: holds a queued message, ends expired holds.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{IdGenerator, MessageId, ServerId, Status, Timestamp};

use super::admin::cancelled_event;
use super::waiting::{Key, change_status, find, remove_entry};
use crate::error::StoreError;
use crate::events::NewEvent;
use crate::outcomes::NewDelivery;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Ends expired holds, at most `limit`; returns how many were examined.
    pub async fn expire_holds(&self, limit: usize) -> Result<u64> {
        let (now, limit) = (self.clock.now(), limit as i64);
        // Called every few seconds, usually without effect: the read avoids a useless write.
        if !self.read(move |sql| Box::pin(has_expired_holds(sql, now))).await? {
            return Ok(0);
        }
        let examined = self
            .write_with_ids(move |sql, ids| {
                Box::pin(async move { expire_holds(sql, &ids, now, limit).await })
            })
            .await?;
        self.notifier.notify_all();
        Ok(examined)
    }
}

pub(crate) async fn has_expired_holds(sql: &Sql<'_>, now: Timestamp) -> Result<bool, StoreError> {
    let text = "SELECT id FROM messages WHERE hold_expiry <= $1 LIMIT 1";
    Ok(sql.query_opt(text, &[now.into()]).await?.is_some())
}

/// Ends expired holds, at most `limit`; returns how many were examined.
pub(crate) async fn expire_holds(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    now: Timestamp,
    limit: i64,
) -> Result<u64, StoreError> {
    let expired = sql
        .query(
            "SELECT server_id, id FROM messages WHERE hold_expiry <= $1 ORDER BY hold_expiry, server_id, id LIMIT $2",
            &[now.into(), limit.into()],
        )
        .await?;
    for row in &expired {
        let key = (ServerId(row.int(0)?), MessageId(row.int(1)?));
        if let Some(state) = find(sql, key).await?.filter(|state| state.status == Status::Held) {
            let details = "The hold ended without a release";
            let (delivery, expiry) = (NewDelivery::local(now, Status::HoldCancelled, details), None);
            change_status(sql, ids, key, &state, &delivery, &cancelled_event(&delivery), expiry).await?;
        }
    }
    Ok(expired.len() as u64)
}

/// Holds a queued message. `false` if that is no longer possible: then nothing is written.
pub(crate) async fn hold(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    delivery: &NewDelivery,
    event: &NewEvent,
    expiry: Timestamp,
) -> Result<bool, StoreError> {
    let Some(state) = find(sql, key).await? else { return Ok(false) };
    let is_held = change_status(sql, ids, key, &state, delivery, event, Some(expiry)).await?;
    if is_held {
        remove_entry(sql, key).await?;
    }
    Ok(is_held)
}
