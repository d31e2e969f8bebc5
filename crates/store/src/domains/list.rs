//! Lists domains, in pages.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainId, DomainName, ServerId};

use super::domain::Domain;
use super::find::{select, with_keys};
use super::usable::usable;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// Domains to list; `None` in a field matches every domain of the scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainFilter {
    pub scope: DomainScope,
    pub name: Option<DomainName>,
    pub verified: Option<bool>,
}

impl From<DomainScope> for DomainFilter {
    fn from(scope: DomainScope) -> Self {
        Self { scope, name: None, verified: None }
    }
}

/// Which domains to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainScope {
    All,
    /// Domains that a server may send from once they are verified: its own, and its account's. A server's own domain
    /// hides the account's domain of the same name.
    UsableBy(ServerId),
    /// Domains of the account itself.
    OfAccount(AccountId),
    /// Domains of the account and of all its servers.
    InAccount(AccountId),
}

#[boxed_futures]
impl Store {
    /// Domains with ids after `after`, in the order of their ids.
    pub async fn list_domains(
        &self,
        filter: DomainFilter,
        after: Option<DomainId>,
        limit: usize,
    ) -> Result<Vec<Domain>> {
        self.read(move |sql| Box::pin(list(sql, filter, after, limit as i64))).await
    }
}

/// SQL text of a page of domains; `$by` is the condition that uses an index. All texts have the same parameters, so a
/// scope without an owner compares `$1` with 0.
macro_rules! page_text {
    ($by:expr) => {
        concat!(
            select!(),
            "WHERE ",
            $by,
            " AND d.id > $2 AND (CAST($4 AS TEXT) IS NULL OR d.name = $4)
              AND (CAST($5 AS BIGINT) IS NULL OR (d.verified_by IS NOT NULL) = ($5 = 1)) ORDER BY d.id LIMIT $3"
        )
    };
}

async fn list(
    sql: &Sql<'_>,
    filter: DomainFilter,
    after: Option<DomainId>,
    limit: i64,
) -> Result<Vec<Domain>, StoreError> {
    let (text, owner) = match (filter.scope, &filter.name) {
        (DomainScope::All, None) => (page_text!("CAST($1 AS BIGINT) = 0"), 0),
        (DomainScope::All, Some(_)) => (page_text!("CAST($1 AS BIGINT) = 0 AND d.name = $4"), 0),
        (DomainScope::OfAccount(id), _) => (page_text!("d.account_id = $1 AND d.server_id IS NULL"), id.0),
        (DomainScope::InAccount(id), None) => (page_text!("d.account_id = $1"), id.0),
        (DomainScope::InAccount(id), Some(_)) => (page_text!("d.account_id = $1 AND d.name = $4"), id.0),
        (DomainScope::UsableBy(id), _) => (
            page_text!(concat!(
                usable!(),
                " AND NOT (d.server_id IS NULL AND EXISTS
                   (SELECT 1 FROM domains o WHERE o.server_id = $1 AND o.name = d.name))"
            )),
            id.0,
        ),
    };
    let params = [
        owner.into(),
        after.map_or(0, |id| id.0).into(),
        limit.into(),
        filter.name.as_ref().map(|name| name.as_str().to_owned()).into(),
        filter.verified.map(i64::from).into(),
    ];
    with_keys(sql, sql.query(text, &params).await?).await
}
