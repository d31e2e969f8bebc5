//! Nodes that share the database.

use postroad_boxed_futures::boxed_futures;

use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Nodes that share the database, by their leases.
    pub async fn live_nodes(&self) -> Result<u32> {
        self.read(move |sql| Box::pin(count_live_nodes(sql))).await
    }
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
