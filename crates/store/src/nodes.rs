//! Nodes that share the database: their leases, and the description that each publishes, such as its version and
//! listeners.
//!
//! A description is a row of `settings` whose key contains the node's identity. The identity stays the same when a
//! lease is lost and taken again.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::sql::{Row, Sql, to_json};
use crate::{Result, Store};

/// A lease ends this long after its last renewal (`postgres/lease.rs`).
const LEASE_DURATION: Duration = Duration::from_secs(30);

/// Description that a node publishes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDescription {
    pub host: String,
    pub version: String,
    pub started_at: Timestamp,
    pub listeners: Vec<NodeListener>,
    /// Certificate that the node's listeners use.
    pub certificate: Option<CertificateNote>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeListener {
    /// Name of the protocol, such as `HTTPS`.
    pub name: String,
    pub address: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateNote {
    /// `None` if the certificate cannot be parsed.
    pub expires_at: Option<Timestamp>,
    /// Why the certificate's files cannot be loaded again; `None` if they can.
    pub file_problem: Option<String>,
    /// Whether the files now contain another certificate, which is not loaded.
    pub is_replaced: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    pub number: u8,
    pub is_live: bool,
    /// Whether this is the node that answers the call.
    pub is_this: bool,
    /// `None` only on SQLite, while the service does not run.
    pub last_seen_at: Option<Timestamp>,
    /// `None` if the node's version publishes no description, or one that this version cannot parse.
    pub description: Option<NodeDescription>,
}

#[boxed_futures]
impl Store {
    /// Replaces this node's description. Removes descriptions of identities that own no node number any more.
    pub async fn describe_node(&self, description: &NodeDescription) -> Result<()> {
        let identity = self.identity.as_deref().ok_or(StoreError::NotFound)?;
        let (key, value) = (format!("node.{identity}"), to_json(description));
        self.write(move |sql| Box::pin(describe(sql, key, value))).await
    }

    /// All nodes that have a number, in the order of their numbers.
    pub async fn list_nodes(&self) -> Result<Vec<NodeRecord>> {
        let (identity, now) = (self.identity.clone(), self.clock.now());
        self.read(move |sql| Box::pin(list(sql, identity, now))).await
    }
}

async fn describe(sql: &Sql<'_>, key: String, value: String) -> Result<(), StoreError> {
    let forget = if sql.is_sqlite() {
        "DELETE FROM settings WHERE key LIKE 'node.%' AND key <> $1"
    } else {
        "DELETE FROM settings WHERE key LIKE 'node.%' AND key <> $1
         AND NOT EXISTS (SELECT 1 FROM nodes n WHERE 'node.' || n.owner = settings.key)"
    };
    sql.execute(forget, &[key.as_str().into()]).await?;
    sql.execute(
        "INSERT INTO settings (key, value) VALUES ($1, $2)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        &[key.into(), value.into()],
    )
    .await?;
    Ok(())
}

async fn list(
    sql: &Sql<'_>,
    identity: Option<std::sync::Arc<str>>,
    now: Timestamp,
) -> Result<Vec<NodeRecord>, StoreError> {
    if sql.is_sqlite() {
        // On SQLite the only node is the service; a command has the store open only while no service runs.
        let text = "SELECT value FROM settings WHERE key LIKE 'node.%' LIMIT 1";
        let row = sql.query_opt(text, &[]).await?;
        let is_live = identity.is_some();
        let description = row.map(|row| read_description(&row, 0)).transpose()?.flatten();
        if !is_live && description.is_none() {
            return Ok(Vec::new());
        }
        let last_seen_at = is_live.then_some(now);
        return Ok(vec![NodeRecord { number: 0, is_live, is_this: is_live, last_seen_at, description }]);
    }
    let rows = sql
        .query(
            "SELECT n.node, n.owner, n.lease_until, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, s.value
             FROM nodes n LEFT JOIN settings s ON s.key = 'node.' || n.owner WHERE n.owner <> '' ORDER BY n.node",
            &[],
        )
        .await?;
    let read = |row: &Row| {
        let (lease_until, now) = (row.time(2)?, row.time(3)?);
        Ok(NodeRecord {
            number: row.int(0)? as u8,
            is_live: lease_until >= now,
            is_this: identity.as_deref() == Some(row.text(1)?.as_str()),
            last_seen_at: Some(lease_until.minus(LEASE_DURATION)),
            description: read_description(row, 4)?,
        })
    };
    rows.iter().map(read).collect()
}

/// Reads a description; `None` if this version cannot parse it.
fn read_description(row: &Row, at: usize) -> Result<Option<NodeDescription>, StoreError> {
    Ok(row.text_opt(at)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Nodes with a running lease; always one on SQLite.
pub(crate) async fn count_live_nodes(sql: &Sql<'_>) -> Result<u32, StoreError> {
    if sql.is_sqlite() {
        return Ok(1);
    }
    let text = "SELECT count(*) FROM nodes
                WHERE owner <> '' AND lease_until >= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let row = sql.query_opt(text, &[]).await?.ok_or(StoreError::NotFound)?;
    Ok(row.int(0)? as u32)
}
