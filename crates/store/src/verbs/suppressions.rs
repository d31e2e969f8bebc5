//! Suppressions: add, remove, find, list. Also added by `finish`, and looked up by `accept` and `begin`.

use postroad_model::{MessageId, ServerId, SuppressionReason, Timestamp};

use crate::error::StoreError;
use crate::records::{NewSuppression, Suppression, address_key};
use crate::sql::{Row, Sql};

/// Keeps the older one, unless it is over. Returns what stands.
pub(crate) async fn add(
    sql: &Sql<'_>,
    server_id: ServerId,
    new: NewSuppression,
    now: Timestamp,
) -> Result<Suppression, StoreError> {
    let address = address_key(&new.address);
    sql.execute(
        "INSERT INTO suppressions (server_id, address, reason, details, origin_message_id, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (server_id, address) DO UPDATE SET reason = excluded.reason, details = excluded.details,
             origin_message_id = excluded.origin_message_id, created_at = excluded.created_at,
             expires_at = excluded.expires_at
         WHERE suppressions.expires_at <= excluded.created_at",
        &[
            server_id.0.into(),
            address.as_str().into(),
            new.reason.as_str().into(),
            new.details.into(),
            new.origin_message_id.map(|id| id.0).into(),
            now.into(),
            new.expires_at.into(),
        ],
    )
    .await?;
    let row = sql
        .query_opt(
            "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
             WHERE server_id = $1 AND address = $2",
            &[server_id.0.into(), address.into()],
        )
        .await?;
    read(&row.ok_or(StoreError::NotFound)?)
}

pub(crate) async fn remove(sql: &Sql<'_>, server_id: ServerId, address: String) -> Result<bool, StoreError> {
    let removed = sql
        .execute(
            "DELETE FROM suppressions WHERE server_id = $1 AND address = $2",
            &[server_id.0.into(), address_key(&address).into()],
        )
        .await?;
    Ok(removed > 0)
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

pub(crate) async fn list(
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
