//! Everything the delivery engine goes by, read at once.

use postroad_model::{PoolId, ServerId, Timestamp};

use super::servers;
use crate::error::StoreError;
use crate::pools::sources;
use crate::records::{DeliverySetup, ServerDelivery};
use crate::sql::Sql;
use crate::{gates, pools};

pub(crate) async fn read(sql: &Sql<'_>, now: Timestamp) -> Result<DeliverySetup, StoreError> {
    Ok(DeliverySetup {
        servers: list_servers(sql).await?,
        pools: pools::list(sql).await?,
        sources: sources::list_sources(sql, now).await?,
        gates: gates::list(sql, now).await?,
        live_nodes: count_live_nodes(sql).await?,
    })
}

async fn list_servers(sql: &Sql<'_>) -> Result<Vec<ServerDelivery>, StoreError> {
    let rows = sql
        .query(
            "SELECT s.id, s.name, coalesce(s.suspended_reason, a.suspended_reason), s.pool_id, s.send_rate
             FROM servers s JOIN accounts a ON a.id = s.account_id ORDER BY s.id",
            &[],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(ServerDelivery {
                id: ServerId(row.int(0)?),
                name: row.text(1)?,
                suspended_reason: row.text_opt(2)?,
                pool_id: row.int_opt(3)?.map(PoolId),
                send_rate: servers::read_rate(row, 4)?,
            })
        })
        .collect()
}

/// Nodes whose lease runs; on SQLite there is the one.
pub(crate) async fn count_live_nodes(sql: &Sql<'_>) -> Result<u32, StoreError> {
    if sql.is_sqlite() {
        return Ok(1);
    }
    let text = "SELECT count(*) FROM nodes
                WHERE owner <> '' AND lease_until >= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let row = sql.query_opt(text, &[]).await?.ok_or(StoreError::NotFound)?;
    Ok(row.int(0)? as u32)
}
