//! Suppresses addresses. An existing entry stays unless it has expired or the new entry lasts longer.

use std::collections::{HashMap, HashSet};

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, Timestamp};

use super::lookup::read;
use super::record::{AddedSuppression, NewSuppression, Suppression, address_key};
use crate::error::StoreError;
use crate::postgres::suppression_rows::SuppressionRows;
use crate::sql::{Sql, read_only, storable, to_json};
use crate::sqlite::rows::insert_suppression;
use crate::{ChangeDescription, Result, Store};

/// Rows written in one transaction, which blocks SQLite's only writer for a few milliseconds.
pub(crate) const ROWS_PER_TRANSACTION: usize = 250;

#[boxed_futures]
impl Store {
    /// Suppresses an address. An existing entry is kept, unless it has expired or the new one lasts longer. Returns the
    /// entry in force.
    pub async fn add_suppression(&self, server_id: ServerId, new: NewSuppression) -> Result<Suppression> {
        let added = self.add_suppressions(server_id, vec![new]).await?.pop();
        added.map(|added| added.stored).ok_or(StoreError::NotFound)
    }

    /// Suppresses many addresses; returns the results in the same order. Not atomic: after a failure some may be
    /// stored, and adding them again is harmless.
    pub async fn add_suppressions(
        &self,
        server_id: ServerId,
        mut new: Vec<NewSuppression>,
    ) -> Result<Vec<AddedSuppression>> {
        let mut added = Vec::with_capacity(new.len());
        while !new.is_empty() {
            let rest = new.split_off(new.len().min(ROWS_PER_TRANSACTION));
            let chunk = std::mem::replace(&mut new, rest);
            let now = self.clock.now();
            let write = self.write_described(move |sql| {
                Box::pin(async move {
                    let added = add(sql, server_id, chunk, now).await?;
                    let count = added.iter().filter(|added| added.is_new).count();
                    Ok((added, describe_count("added", count)))
                })
            });
            added.extend(write.await?);
            self.last_suppressed.note([server_id], self.clock.now());
        }
        Ok(added)
    }
}

/// Description for the audit log: the number of changed addresses, but no address, because the log is kept when a
/// person's data is erased.
pub(super) fn describe_count(field: &str, count: usize) -> Option<ChangeDescription> {
    (count > 0).then(|| [(field.to_owned(), count.into())].into_iter().collect())
}

/// Suppresses addresses inside a transaction. Keeps an existing entry, unless it has expired or the new one lasts
/// longer. Returns the entries in force, in the same order; if an address occurs several times, the first counts.
pub(crate) async fn add(
    sql: &Sql<'_>,
    server_id: ServerId,
    new: Vec<NewSuppression>,
    now: Timestamp,
) -> Result<Vec<AddedSuppression>> {
    let keys: Vec<String> = new.iter().map(|new| storable(&address_key(&new.address)).into_owned()).collect();
    let mut written = write(sql, server_id, &new, &keys, now).await?;
    let stored = read_stored(sql, server_id, &keys).await?;
    let found = keys.iter().map(|key| {
        let stored = stored.get(key).ok_or(StoreError::NotFound)?.clone();
        Ok(AddedSuppression { stored, is_new: written.remove(key) })
    });
    found.collect()
}

/// Writes suppressions; returns the keys of the addresses that were written.
async fn write(
    sql: &Sql<'_>,
    server_id: ServerId,
    new: &[NewSuppression],
    keys: &[String],
    now: Timestamp,
) -> Result<HashSet<String>> {
    let mut written = HashSet::new();
    match sql {
        Sql::Sqlite(connection) => {
            let connection = connection.lock();
            let mut seen = HashSet::new();
            for (new, key) in new.iter().zip(keys).filter(|(_, key)| seen.insert(*key)) {
                if insert_suppression(&connection, server_id, new, now)? {
                    written.insert(key.clone());
                }
            }
        }
        Sql::Postgres(transaction) => {
            let mut rows = SuppressionRows::default();
            for suppression in new {
                rows.push(server_id, suppression, now);
            }
            if let Some((text, params)) = rows.statement() {
                let statement = transaction.prepare_cached(text).await?;
                let addresses = transaction.query(&statement, &params).await?;
                written.extend(addresses.iter().map(|row| row.get::<_, String>(0)));
            }
        }
        Sql::PostgresRead(_) => return Err(read_only()),
    }
    Ok(written)
}

async fn read_stored(
    sql: &Sql<'_>,
    server_id: ServerId,
    keys: &[String],
) -> Result<HashMap<String, Suppression>> {
    let text = if sql.is_sqlite() {
        "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
         WHERE server_id = $1 AND address IN (SELECT value FROM json_each($2))"
    } else {
        "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
         WHERE server_id = $1 AND address = ANY (
             ARRAY (SELECT jsonb_array_elements_text($2::text::jsonb)))"
    };
    let rows = sql.query(text, &[server_id.0.into(), to_json(&keys).into()]).await?;
    rows.iter().map(|row| read(row).map(|found| (found.address.clone(), found))).collect()
}
