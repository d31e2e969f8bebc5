//! Whether opens and clicks of a server's mail are tracked, unless a domain says otherwise.

use postroad_model::{ServerId, Timestamp};

use crate::error::StoreError;
use crate::records::ServerTracking;
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

/// From `track_opens, track_clicks, track_excluded_hosts`.
pub(crate) fn read_of_server(row: &Row, at: usize) -> Result<ServerTracking, StoreError> {
    Ok(ServerTracking { opens: row.flag(at)?, clicks: row.flag(at + 1)?, excluded_hosts: row.json(at + 2)? })
}
