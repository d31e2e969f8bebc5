//! Suppressions: add, remove, find, list. Also added by `finish`, and looked up by `accept` and `begin`.

use std::collections::{HashMap, HashSet};

use postroad_model::{MessageId, ServerId, SuppressionReason, Timestamp};
use serde::Serialize;

use crate::error::StoreError;
use crate::records::{
    AddedSuppression, NewSuppression, Suppression, SuppressionCursor, SuppressionFilter, address_key,
};
use crate::sql::{Row, Sql, storable, to_json};

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
    let standing = standing(sql, server_id, &rows).await?;
    let found = keys.iter().map(|key| {
        let standing = standing.get(key).ok_or(StoreError::NotFound)?.clone();
        Ok(AddedSuppression { standing, is_new: written.remove(key) })
    });
    found.collect()
}

async fn standing(
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

/// Returns, in the order given, whether each was suppressed.
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
    let removed = sql.query(text, &[server_id.0.into(), to_json(&keys).into(), now.into()]).await?;
    let mut removed = removed.iter().map(|row| row.text(0)).collect::<Result<HashSet<_>, _>>()?;
    Ok(keys.iter().map(|key| removed.remove(key)).collect())
}

pub(crate) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    address: String,
    now: Timestamp,
) -> Result<Option<Suppression>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
             WHERE server_id = $1 AND address = $2 AND (expires_at IS NULL OR expires_at > $3)",
            &[server_id.0.into(), address_key(&address).into(), now.into()],
        )
        .await?;
    row.as_ref().map(read).transpose()
}

/// By address: what stands the whole time is in some page, whatever is added and removed meanwhile.
pub(crate) async fn list_by_address(
    sql: &Sql<'_>,
    server_id: ServerId,
    after: Option<String>,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Suppression>, StoreError> {
    let rows = sql
        .query(
            "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
             WHERE server_id = $1 AND address > $2 AND (expires_at IS NULL OR expires_at > $3)
             ORDER BY address LIMIT $4",
            &[server_id.0.into(), after.unwrap_or_default().into(), now.into(), limit.into()],
        )
        .await?;
    rows.iter().map(read).collect()
}

/// Newest first.
pub(crate) async fn list(
    sql: &Sql<'_>,
    server_id: ServerId,
    filter: SuppressionFilter,
    after: Option<SuppressionCursor>,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Suppression>, StoreError> {
    let since = filter.since.map_or(i64::MIN, Timestamp::as_micros);
    let before = filter.until.map_or(i64::MAX, Timestamp::as_micros);
    let (from, address) =
        after.map_or((i64::MAX, String::new()), |cursor| (cursor.created_at.as_micros(), cursor.address));
    let mut params = vec![
        server_id.0.into(),
        since.into(),
        before.into(),
        from.into(),
        address.into(),
        now.into(),
        limit.into(),
    ];
    let text = match filter.reason {
        None => {
            "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
             WHERE server_id = $1 AND created_at >= $2 AND created_at < $3
                 AND created_at <= $4 AND (created_at < $4 OR address > $5)
                 AND (expires_at IS NULL OR expires_at > $6)
             ORDER BY created_at DESC, address LIMIT $7"
        }
        Some(reason) => {
            params.push(reason.as_str().into());
            "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
             WHERE server_id = $1 AND reason = $8 AND created_at >= $2 AND created_at < $3
                 AND created_at <= $4 AND (created_at < $4 OR address > $5)
                 AND (expires_at IS NULL OR expires_at > $6)
             ORDER BY created_at DESC, address LIMIT $7"
        }
    };
    sql.query(text, &params).await?.iter().map(read).collect()
}

pub(crate) async fn has_ended(sql: &Sql<'_>, now: Timestamp) -> Result<bool, StoreError> {
    let text = "SELECT server_id FROM suppressions WHERE expires_at <= $1 LIMIT 1";
    Ok(sql.query_opt(text, &[now.into()]).await?.is_some())
}

/// Removes those that are over, at most `limit`; returns how many.
pub(crate) async fn remove_ended(sql: &Sql<'_>, now: Timestamp, limit: i64) -> Result<u64, StoreError> {
    sql.execute(
        "DELETE FROM suppressions WHERE expires_at <= $1 AND (server_id, address) IN (
             SELECT server_id, address FROM suppressions WHERE expires_at <= $1
             ORDER BY expires_at, server_id, address LIMIT $2)",
        &[now.into(), limit.into()],
    )
    .await
}

fn read(row: &Row) -> Result<Suppression, StoreError> {
    Ok(Suppression {
        address: row.text(0)?,
        reason: row.name(1, SuppressionReason::parse)?,
        details: row.text(2)?,
        origin_message_id: row.int_opt(3)?.map(MessageId),
        created_at: row.time(4)?,
        expires_at: row.time_opt(5)?,
    })
}
