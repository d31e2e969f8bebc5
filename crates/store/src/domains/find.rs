//! Finds domains, with their keys.

use std::collections::HashMap;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainId, DomainName, ServerId};

use super::domain::{Domain, DomainKey, NameUse, VerifiedBy};
use super::usable::usable;
use super::{keys, tracking};
use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

/// The columns that `read` reads.
macro_rules! select {
    () => {
        "SELECT d.id, d.account_id, a.name, d.server_id, s.name, d.name, d.verified_by, d.verified_at, d.good_since,
                d.failing_since, d.checked_at, d.next_check_at, d.records, d.return_path_since, d.track_host_since,
                d.track_opens, d.track_clicks, d.track_host, d.created_at, d.updated_at, d.result_begun_at,
                d.return_path_fails_since, d.return_path_fails, d.track_host_fails_since, d.track_host_fails, d.track_alias_at
         FROM domains d JOIN accounts a ON a.id = d.account_id LEFT JOIN servers s ON s.id = d.server_id "
    };
}
pub(super) use select;

#[boxed_futures]
impl Store {
    /// A domain that the server may send from, verified or not. The server's own domain takes precedence over its
    /// account's.
    pub async fn find_domain(&self, server_id: ServerId, name: DomainName) -> Result<Option<Domain>> {
        self.read(move |sql| Box::pin(find(sql, server_id, name))).await
    }

    /// A domain of the account itself, verified or not.
    pub async fn find_account_domain(
        &self,
        account_id: AccountId,
        name: DomainName,
    ) -> Result<Option<Domain>> {
        self.read(move |sql| Box::pin(find_of_account(sql, account_id, name))).await
    }

    pub async fn find_domain_by_id(&self, id: DomainId) -> Result<Option<Domain>> {
        self.read(move |sql| Box::pin(find_by_id(sql, id))).await
    }

    /// The domains of this name, whoever owns them.
    pub async fn find_domains_named(&self, name: DomainName, limit: usize) -> Result<Vec<Domain>> {
        self.read(move |sql| Box::pin(find_named(sql, name, limit as i64))).await
    }
}

async fn find(sql: &Sql<'_>, server_id: ServerId, name: DomainName) -> Result<Option<Domain>, StoreError> {
    let text = concat!(
        select!(),
        "WHERE d.name = $2 AND ",
        usable!(),
        " ORDER BY coalesce(d.server_id, 0) DESC LIMIT 1"
    );
    let row = sql.query_opt(text, &[server_id.0.into(), name.as_str().into()]).await?;
    with_keys(sql, row.into_iter().collect()).await.map(|mut found| found.pop())
}

async fn find_of_account(
    sql: &Sql<'_>,
    account_id: AccountId,
    name: DomainName,
) -> Result<Option<Domain>, StoreError> {
    let text = concat!(select!(), "WHERE d.account_id = $1 AND d.server_id IS NULL AND d.name = $2");
    let row = sql.query_opt(text, &[account_id.0.into(), name.as_str().into()]).await?;
    with_keys(sql, row.into_iter().collect()).await.map(|mut found| found.pop())
}

async fn find_named(sql: &Sql<'_>, name: DomainName, limit: i64) -> Result<Vec<Domain>, StoreError> {
    let text = concat!(select!(), "WHERE d.name = $1 ORDER BY d.id LIMIT $2");
    let rows = sql.query(text, &[name.as_str().into(), limit.into()]).await?;
    with_keys(sql, rows).await
}

pub(super) async fn find_by_id(sql: &Sql<'_>, id: DomainId) -> Result<Option<Domain>, StoreError> {
    let text = concat!(select!(), "WHERE d.id = $1");
    let row = sql.query_opt(text, &[id.0.into()]).await?;
    with_keys(sql, row.into_iter().collect()).await.map(|mut found| found.pop())
}

/// Reads the domain and locks it until the end of the transaction.
pub(super) async fn lock(sql: &Sql<'_>, id: DomainId) -> Result<Domain, StoreError> {
    if !sql.is_sqlite() {
        sql.query_opt("SELECT id FROM domains WHERE id = $1 FOR UPDATE", &[id.0.into()]).await?;
    }
    find_by_id(sql, id).await?.ok_or(StoreError::NotFound)
}

/// Reads the domains of these rows, with their keys.
pub(super) async fn with_keys(sql: &Sql<'_>, rows: Vec<Row>) -> Result<Vec<Domain>, StoreError> {
    let mut domains = rows.iter().map(read).collect::<Result<Vec<Domain>, StoreError>>()?;
    let ids: Vec<i64> = domains.iter().map(|domain| domain.id.0).collect();
    if ids.is_empty() {
        return Ok(domains);
    }
    let mut keys: HashMap<DomainId, Vec<DomainKey>> = HashMap::new();
    for (id, key) in keys::list(sql, &ids).await? {
        keys.entry(id).or_default().push(key);
    }
    for domain in &mut domains {
        domain.keys = keys.remove(&domain.id).unwrap_or_default();
    }
    Ok(domains)
}

fn read(row: &Row) -> Result<Domain, StoreError> {
    let name = row.text(5)?;
    let verified_by = match row.text_opt(6)? {
        None => None,
        Some(_) => Some(row.parsed(6, VerifiedBy::parse)?),
    };
    Ok(Domain {
        id: DomainId(row.int(0)?),
        account_id: AccountId(row.int(1)?),
        account_name: row.text(2)?,
        server_id: row.int_opt(3)?.map(ServerId),
        server_name: row.text_opt(4)?,
        name: DomainName::parse(&name).map_err(|e| StoreError::Internal(format!("domain {name:?}: {e}")))?,
        verified_by,
        verified_at: row.time_opt(7)?,
        good_since: row.time_opt(8)?,
        failing_since: row.time_opt(9)?,
        checked_at: row.time_opt(10)?,
        next_check_at: row.time(11)?,
        records: row.text(12)?,
        result_begun_at: row.time_opt(20)?,
        has_track_alias: row.time_opt(25)?.is_some(),
        return_path: NameUse {
            since: row.time_opt(13)?,
            fails_since: row.time_opt(21)?,
            fails: row.int(22)? as u32,
        },
        track_host: NameUse {
            since: row.time_opt(14)?,
            fails_since: row.time_opt(23)?,
            fails: row.int(24)? as u32,
        },
        tracking: tracking::read(row, 15)?,
        keys: Vec::new(),
        created_at: row.time(18)?,
        updated_at: row.time(19)?,
    })
}
