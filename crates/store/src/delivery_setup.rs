//! Servers, pools, sources and gates for the delivery engine, read at once.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, PoolId, SendRate, ServerId, Timestamp};

use crate::error::StoreError;
use crate::gates::Gate;
use crate::nodes::count_live_nodes;
use crate::pools::{Pool, Source, sources};
use crate::setup::ceiling_values::read_rate;
use crate::sql::Sql;
use crate::{Result, Store, gates, pools};

/// A consistent snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverySetup {
    pub servers: Vec<ServerDelivery>,
    pub pools: Vec<Pool>,
    pub sources: Vec<Source>,
    /// Gates that have not ended.
    pub gates: Vec<Gate>,
    /// Nodes that share the work, including this one.
    pub live_nodes: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDelivery {
    pub id: ServerId,
    pub name: String,
    /// Suspension of the server or its account; deleted ones do not send either.
    pub suspended_reason: Option<String>,
    pub pool_id: Option<PoolId>,
    pub send_rate: Option<SendRate>,
    pub account_id: AccountId,
    /// Rate of all servers of the account together.
    pub account_rate: Option<SendRate>,
}

#[boxed_futures]
impl Store {
    /// Current servers, pools, sources, gates and number of nodes.
    pub async fn delivery_setup(&self) -> Result<DeliverySetup> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(read(sql, now))).await
    }
}

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
            "SELECT s.id, s.name,
                    coalesce(s.suspended_reason, a.suspended_reason,
                             CASE WHEN s.delete_at IS NOT NULL OR a.delete_at IS NOT NULL THEN 'deleted' END),
                    s.pool_id, s.send_rate, a.id, a.send_rate
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
                send_rate: read_rate(row, 4)?,
                account_id: AccountId(row.int(5)?),
                account_rate: read_rate(row, 6)?,
            })
        })
        .collect()
}
