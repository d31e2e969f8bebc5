//! Whether opens and clicks are tracked: a server's defaults, and what a domain says otherwise.

use postroad_model::{DomainId, ServerId, Timestamp};

use crate::error::StoreError;
use crate::records::{DomainTracking, ServerTracking};
use crate::sql::{Row, Sql, to_json};

pub(crate) async fn set_of_server(
    sql: &Sql<'_>,
    id: ServerId,
    tracking: ServerTracking,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.change(
        "UPDATE servers SET track_opens = $2, track_clicks = $3, track_excluded_hosts = $4, updated_at = $5
         WHERE id = $1",
        &[
            id.0.into(),
            tracking.opens.into(),
            tracking.clicks.into(),
            to_json(&tracking.excluded_hosts).into(),
            now.into(),
        ],
    )
    .await
}

pub(crate) async fn set_of_domain(
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

/// The host names that domains have for their links.
pub(crate) async fn list_hosts(sql: &Sql<'_>) -> Result<Vec<String>, StoreError> {
    let rows = sql.query("SELECT DISTINCT track_host FROM domains WHERE track_host IS NOT NULL", &[]).await?;
    rows.iter().map(|row| row.text(0)).collect()
}

/// From `track_opens, track_clicks, track_excluded_hosts`.
pub(crate) fn read_of_server(row: &Row, at: usize) -> Result<ServerTracking, StoreError> {
    Ok(ServerTracking { opens: row.flag(at)?, clicks: row.flag(at + 1)?, excluded_hosts: row.json(at + 2)? })
}

/// From `track_opens, track_clicks, track_host`.
pub(crate) fn read_of_domain(row: &Row, at: usize) -> Result<DomainTracking, StoreError> {
    let flag = |at: usize| Ok::<_, StoreError>(row.int_opt(at)?.map(|flag| flag != 0));
    Ok(DomainTracking { opens: flag(at)?, clicks: flag(at + 1)?, host: row.text_opt(at + 2)? })
}
