//! Creates a domain, within the limits of its owner.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainId, DomainName, LimitedObject, ServerId, Timestamp};

use super::domain::{Domain, DomainOwner, KeyState, NewDkimKey, VerifiedBy};
use super::{find, keys};
use crate::error::StoreError;
use crate::setup::object_counts;
use crate::sql::Sql;
use crate::{Result, Store};

#[derive(Debug, Clone)]
pub struct NewDomain {
    pub owner: DomainOwner,
    pub name: DomainName,
    /// Whether the operator verified the domain, so that its keys sign from the beginning.
    pub is_verified: bool,
    pub keys: Vec<NewDkimKey>,
    pub next_check_at: Timestamp,
    /// Results for the domain's DNS records that are already known: a JSON array.
    pub records: String,
    /// Maximum number of domains that the owner may have, including this one.
    pub per_owner_max: usize,
}

/// An owner's domains, read before another is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerDomains {
    pub account_id: AccountId,
    /// Number of domains; counted up to a limit.
    pub count: usize,
    /// Whether the owner already has a domain of this name.
    pub has_name: bool,
}

#[boxed_futures]
impl Store {
    /// `NotFound` without the owner, `Conflict` if the owner already has the domain, `LimitReached` if the owner has
    /// the maximum number of domains, `CeilingReached` if the account may have no more.
    pub async fn create_domain(&self, new: NewDomain) -> Result<Domain> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(create(sql, new, now))).await
    }

    /// The owner's domains before one of this name is added, counted up to `count_max`. `NotFound` without the server.
    pub async fn read_owner_domains(
        &self,
        owner: DomainOwner,
        name: DomainName,
        count_max: usize,
    ) -> Result<OwnerDomains> {
        self.read(move |sql| Box::pin(read_owned(sql, owner, name, count_max as i64))).await
    }
}

async fn create(sql: &Sql<'_>, new: NewDomain, now: Timestamp) -> Result<Domain, StoreError> {
    let (account_id, server_id) = account_of(sql, new.owner).await?;
    lock_owner(sql, account_id, server_id).await?;
    let count_max = new.per_owner_max as i64;
    let owned = read_owned(sql, new.owner, new.name.clone(), count_max).await?;
    if owned.count >= new.per_owner_max && !owned.has_name {
        return Err(StoreError::LimitReached);
    }
    if !owned.has_name {
        object_counts::check_ceiling(sql, account_id, LimitedObject::Domains, now).await?;
    }
    let inserted = sql
        .query_opt(
            "INSERT INTO domains (account_id, server_id, name, verified_by, verified_at, next_check_at, records,
                                  created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $8, $7, $7) RETURNING id",
            &[
                account_id.0.into(),
                server_id.map(|id| id.0).into(),
                new.name.as_str().into(),
                new.is_verified.then_some(VerifiedBy::Operator.as_str()).into(),
                new.is_verified.then_some(now).into(),
                new.next_check_at.into(),
                now.into(),
                new.records.into(),
            ],
        )
        .await?
        .ok_or(StoreError::Conflict)?;
    object_counts::adjust_count(sql, account_id, LimitedObject::Domains, 1).await?;
    let id = DomainId(inserted.int(0)?);
    let state = if new.is_verified { KeyState::Active } else { KeyState::Pending };
    for key in new.keys {
        keys::insert(sql, id, key, state, now).await?;
    }
    find::find_by_id(sql, id).await?.ok_or(StoreError::NotFound)
}

/// Makes concurrent calls for one owner wait for each other, so that each call counts the domains of earlier calls.
/// SQLite has only one writer anyway.
async fn lock_owner(
    sql: &Sql<'_>,
    account_id: AccountId,
    server_id: Option<ServerId>,
) -> Result<(), StoreError> {
    if sql.is_sqlite() {
        return Ok(());
    }
    let (text, id) = match server_id {
        Some(id) => ("SELECT id FROM servers WHERE id = $1 FOR NO KEY UPDATE", id.0),
        None => ("SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE", account_id.0),
    };
    sql.query_opt(text, &[id.into()]).await?;
    Ok(())
}

async fn read_owned(
    sql: &Sql<'_>,
    owner: DomainOwner,
    name: DomainName,
    count_max: i64,
) -> Result<OwnerDomains, StoreError> {
    let (account_id, server_id) = account_of(sql, owner).await?;
    let (text, id) = match server_id {
        Some(id) => (
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM domains WHERE server_id = $1 LIMIT $2) counted),
                    (SELECT count(*) FROM domains WHERE server_id = $1 AND name = $3)",
            id.0,
        ),
        None => (
            "SELECT (SELECT count(*) FROM
                      (SELECT 1 FROM domains WHERE account_id = $1 AND server_id IS NULL LIMIT $2) counted),
                    (SELECT count(*) FROM domains WHERE account_id = $1 AND server_id IS NULL AND name = $3)",
            account_id.0,
        ),
    };
    let row = sql.query_opt(text, &[id.into(), count_max.into(), name.as_str().into()]).await?;
    let row = row.ok_or(StoreError::NotFound)?;
    Ok(OwnerDomains { account_id, count: row.int(0)? as usize, has_name: row.int(1)? > 0 })
}

async fn account_of(sql: &Sql<'_>, owner: DomainOwner) -> Result<(AccountId, Option<ServerId>), StoreError> {
    match owner {
        DomainOwner::Account(id) => Ok((id, None)),
        DomainOwner::Server(id) => {
            let text = "SELECT account_id FROM servers WHERE id = $1";
            let row = sql.query_opt(text, &[id.0.into()]).await?.ok_or(StoreError::NotFound)?;
            Ok((AccountId(row.int(0)?), Some(id)))
        }
    }
}
