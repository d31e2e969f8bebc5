//! Servers, pools, sources and gates for the delivery engine. Each read returns all of them, except servers that have
//! not changed since the previous read.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, PoolId, SendRate, ServerId, Timestamp};

use crate::error::StoreError;
use crate::gates::Gate;
use crate::nodes::count_live_nodes;
use crate::pools::{Pool, Source, sources};
use crate::setup::ceiling_values::read_rate;
use crate::sql::{Row, Sql};
use crate::{Result, Store, gates, pools};

/// The servers that changed, and all pools, sources and gates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverySetup {
    /// Servers that changed, or whose account changed; all servers if the read had no `since`.
    pub servers: Vec<ServerDelivery>,
    pub pools: Vec<Pool>,
    pub sources: Vec<Source>,
    /// Gates that have not ended.
    pub gates: Vec<Gate>,
    /// Nodes that share the work, including this one.
    pub live_nodes: u32,
    /// Argument `since` of the next read.
    pub mark: SetupMark,
}

/// Point in the order of changes. Changes committed after the read that returned this mark come at or after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetupMark(i64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDelivery {
    pub id: ServerId,
    /// Why the server must not send: it or its account is suspended or deleted.
    pub suspended_reason: Option<String>,
    pub pool_id: Option<PoolId>,
    pub send_rate: Option<SendRate>,
    pub account_id: AccountId,
    /// Rate of all servers of the account together.
    pub account_rate: Option<SendRate>,
}

#[boxed_futures]
impl Store {
    /// Current pools, sources, gates and number of nodes, and the servers that changed since `since`; all servers if it
    /// is `None`.
    pub async fn delivery_setup(&self, since: Option<SetupMark>) -> Result<DeliverySetup> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(read(sql, since, now))).await
    }

    /// Servers that send from a pool, at most `limit`.
    pub async fn list_servers_of_pool(&self, id: PoolId, limit: usize) -> Result<Vec<ServerId>> {
        let text = "SELECT id FROM servers WHERE pool_id = $1
                        OR (pool_id IS NULL AND $1 = (SELECT id FROM pools WHERE shared = 1))
                    ORDER BY id LIMIT $2";
        self.fetch_all(text, vec![id.0.into(), (limit as i64).into()], |row| row.int(0).map(ServerId)).await
    }
}

async fn read(sql: &Sql<'_>, since: Option<SetupMark>, now: Timestamp) -> Result<DeliverySetup, StoreError> {
    // The mark is read first, so that a change committed meanwhile is read twice rather than never.
    let mark = read_mark(sql).await?;
    // If `since` is beyond the current mark, the database was replaced by an older copy, so all servers are read.
    let since = since.filter(|since| *since <= mark);
    Ok(DeliverySetup {
        servers: list_servers(sql, since).await?,
        pools: pools::list(sql).await?,
        sources: sources::list_sources(sql, now).await?,
        gates: gates::list(sql, now).await?,
        live_nodes: count_live_nodes(sql).await?,
        mark,
    })
}

async fn read_mark(sql: &Sql<'_>) -> Result<SetupMark, StoreError> {
    // On PostgreSQL, every transaction that this statement does not see has at least this number.
    let text = if sql.is_sqlite() { "SELECT last + 1 FROM setup_changes" } else { "SELECT settled_xact()" };
    let row = sql.query_opt(text, &[]).await?.ok_or(StoreError::NotFound)?;
    row.int(0).map(SetupMark)
}

macro_rules! servers {
    () => {
        "SELECT s.id,
                coalesce(s.suspended_reason, a.suspended_reason,
                         CASE WHEN s.delete_at IS NOT NULL OR a.delete_at IS NOT NULL THEN 'deleted' END),
                s.pool_id, s.send_rate, a.id, a.send_rate
         FROM servers s JOIN accounts a ON a.id = s.account_id "
    };
}

async fn list_servers(sql: &Sql<'_>, since: Option<SetupMark>) -> Result<Vec<ServerDelivery>, StoreError> {
    let rows = match since {
        None => sql.query(servers!(), &[]).await?,
        Some(SetupMark(since)) => sql.query(CHANGED_SERVERS, &[since.into()]).await?,
    };
    let mut servers = rows.iter().map(read_server).collect::<Result<Vec<_>, _>>()?;
    servers.sort_by_key(|server| server.id);
    servers.dedup_by_key(|server| server.id);
    Ok(servers)
}

/// Each half of the union uses the index on `changed_xact` of its own table. `list_servers` sorts and removes
/// duplicates: if this statement did, SQLite would read all servers in the order of their ids.
pub(crate) const CHANGED_SERVERS: &str =
    concat!(servers!(), "WHERE s.changed_xact >= $1 UNION ALL ", servers!(), "WHERE a.changed_xact >= $1");

fn read_server(row: &Row) -> Result<ServerDelivery, StoreError> {
    Ok(ServerDelivery {
        id: ServerId(row.int(0)?),
        suspended_reason: row.text_opt(1)?,
        pool_id: row.int_opt(2)?.map(PoolId),
        send_rate: read_rate(row, 3)?,
        account_id: AccountId(row.int(4)?),
        account_rate: read_rate(row, 5)?,
    })
}
