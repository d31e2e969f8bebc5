//! Whether opens and clicks of a domain's mail are tracked, where that differs from its server, and by which host.

use postroad_model::{DomainId, Timestamp};

use super::records::DomainTracking;
use crate::error::StoreError;
use crate::sql::{Row, Sql};

pub(super) async fn set(
    sql: &Sql<'_>,
    id: DomainId,
    tracking: DomainTracking,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.change(
        "UPDATE domains SET track_opens = $2, track_clicks = $3, track_host = $4, updated_at = $5 WHERE id = $1",
        &[
            id.0.into(),
            tracking.opens.into(),
            tracking.clicks.into(),
            tracking.host.into(),
            now.into(),
        ],
    )
    .await
}

/// The host names that links lead to: those that were set, and those that are aliases of ours or were so once.
pub(super) async fn list_hosts(sql: &Sql<'_>) -> Result<Vec<String>, StoreError> {
    let rows = sql
        .query(
            "SELECT DISTINCT track_host FROM domains WHERE track_host IS NOT NULL
             UNION SELECT 'track.' || name FROM domains WHERE track_alias_at IS NOT NULL",
            &[],
        )
        .await?;
    rows.iter().map(|row| row.text(0)).collect()
}

/// From `track_opens, track_clicks, track_host`.
pub(super) fn read(row: &Row, at: usize) -> Result<DomainTracking, StoreError> {
    let flag = |at: usize| Ok::<_, StoreError>(row.int_opt(at)?.map(|flag| flag != 0));
    Ok(DomainTracking { opens: flag(at)?, clicks: flag(at + 1)?, host: row.text_opt(at + 2)? })
}
