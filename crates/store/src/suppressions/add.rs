//! Suppress addresses. An existing entry stays unless it has ended or the new one lasts longer.

use std::collections::{HashMap, HashSet};

use postroad_model::{ServerId, SuppressionReason, Timestamp};
use serde::Serialize;

use super::lookup::read;
use super::record::{AddedSuppression, NewSuppression, Suppression, address_key};
use crate::error::StoreError;
use crate::sql::{Sql, storable, to_json};
use crate::{Result, Store};

/// Rows that one transaction takes: SQLite's one writer is kept from everybody's mail for a few milliseconds.
pub(crate) const AT_ONCE: usize = 250;

impl Store {
    /// Suppresses an address; one that is suppressed already keeps its older entry, unless that is over or the new
    /// one lasts longer. Returns the entry that stands.
    pub async fn add_suppression(&self, server_id: ServerId, new: NewSuppression) -> Result<Suppression> {
        let added = self.add_suppressions(server_id, vec![new]).await?.pop();
        added.map(|added| added.stored).ok_or(StoreError::NotFound)
    }

    /// The same for many, in the order given. Not all or nothing: after a failure some may stand, and adding them
    /// again does no harm.
    pub async fn add_suppressions(
        &self,
        server_id: ServerId,
        mut new: Vec<NewSuppression>,
    ) -> Result<Vec<AddedSuppression>> {
        let mut added = Vec::with_capacity(new.len());
        while !new.is_empty() {
            let rest = new.split_off(new.len().min(AT_ONCE));
            let some = std::mem::replace(&mut new, rest);
            let now = self.clock.now();
            added.extend(self.write(move |sql| Box::pin(add(sql, server_id, some, now))).await?);
            self.last_suppressed.note([server_id], self.clock.now());
        }
        Ok(added)
    }
}

/// A row on its way in, as JSON: one statement takes any number of them on either engine.
#[derive(Serialize)]
struct NewRow<'a> {
    address: &'a str,
    reason: SuppressionReason,
    details: &'a str,
    origin: Option<i64>,
    expires_at: Option<i64>,
}

/// Keeps an older one, unless it is over or the new one lasts longer. Returns what stands, in the order given; of
/// several for one address the first counts.
pub(crate) async fn add(
    sql: &Sql<'_>,
    server_id: ServerId,
    new: Vec<NewSuppression>,
    now: Timestamp,
) -> Result<Vec<AddedSuppression>, StoreError> {
    let keys: Vec<String> = new.iter().map(|new| storable(&address_key(&new.address)).into_owned()).collect();
    let details: Vec<_> = new.iter().map(|new| storable(&new.details)).collect();
    let mut seen = HashSet::new();
    let rows: Vec<NewRow<'_>> = new
        .iter()
        .zip(keys.iter().zip(&details))
        .filter(|(_, (key, _))| seen.insert(key.as_str()))
        .map(|(new, (address, details))| NewRow {
            address,
            reason: new.reason,
            details,
            origin: new.origin_message_id.map(|id| id.0),
            expires_at: new.expires_at.map(Timestamp::as_micros),
        })
        .collect();
    let text = if sql.is_sqlite() {
        // `WHERE true` tells SQLite's parser that ON belongs to the INSERT.
        "INSERT INTO suppressions (server_id, address, reason, details, origin_message_id, created_at, expires_at)
         SELECT $1, value ->> 'address', value ->> 'reason', value ->> 'details', value ->> 'origin', $3,
                value ->> 'expires_at'
         FROM json_each($2) WHERE true
         ON CONFLICT (server_id, address) DO UPDATE SET reason = excluded.reason, details = excluded.details,
             origin_message_id = excluded.origin_message_id, created_at = excluded.created_at,
             expires_at = excluded.expires_at
         WHERE suppressions.expires_at <= excluded.created_at
             OR suppressions.expires_at < coalesce(excluded.expires_at, 9223372036854775807)
         RETURNING address"
    } else {
        // Sorted, so that two nodes do not wait for each other in a circle.
        "INSERT INTO suppressions AS known
             (server_id, address, reason, details, origin_message_id, created_at, expires_at)
         SELECT $1::bigint, address, reason, details, origin, $3::bigint, expires_at
         FROM jsonb_to_recordset($2::text::jsonb)
             AS row (address text, reason text, details text, origin bigint, expires_at bigint)
         ORDER BY address
         ON CONFLICT (server_id, address) DO UPDATE SET reason = excluded.reason, details = excluded.details,
             origin_message_id = excluded.origin_message_id, created_at = excluded.created_at,
             expires_at = excluded.expires_at
         WHERE known.expires_at <= excluded.created_at
             OR known.expires_at < coalesce(excluded.expires_at, 9223372036854775807)
         RETURNING address"
    };
    let written = sql.query(text, &[server_id.0.into(), to_json(&rows).into(), now.into()]).await?;
    let mut written = written.iter().map(|row| row.text(0)).collect::<Result<HashSet<_>, _>>()?;
    let stored = read_stored(sql, server_id, &rows).await?;
    let found = keys.iter().map(|key| {
        let stored = stored.get(key).ok_or(StoreError::NotFound)?.clone();
        Ok(AddedSuppression { stored, is_new: written.remove(key) })
    });
    found.collect()
}

async fn read_stored(
    sql: &Sql<'_>,
    server_id: ServerId,
    rows: &[NewRow<'_>],
) -> Result<HashMap<String, Suppression>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
         WHERE server_id = $1 AND address IN (SELECT value ->> 'address' FROM json_each($2))"
    } else {
        "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
         WHERE server_id = $1 AND address = ANY (
             ARRAY (SELECT row.address FROM jsonb_to_recordset($2::text::jsonb) AS row (address text)))"
    };
    let rows = sql.query(text, &[server_id.0.into(), to_json(&rows).into()]).await?;
    rows.iter().map(|row| read(row).map(|found| (found.address.clone(), found))).collect()
}
