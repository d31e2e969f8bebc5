//! Creating, finding, listing and deleting pools.

use std::collections::HashSet;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, PoolId};
use postroad_store::{AuditSubject, Pool, StoreError};

use super::view::PoolView;
use crate::access::{Operation, Subject, permit, permit_any};
use crate::accounts::{AccountRefusal, Created, CreationKey, ObjectKind, Requester};
use crate::{App, names};

#[derive(Debug, Clone)]
pub struct NewPoolRequest {
    pub name: String,
    /// Whether the new pool is for servers without a pool of their own.
    pub shared: bool,
    /// The account that the pool is reserved for.
    pub account: Option<AccountId>,
    pub idempotency_key: Option<CreationKey>,
}

/// Pools to list; `None` in a field matches all.
#[derive(Debug, Clone, Default)]
pub struct PoolFilter {
    /// Only pools that this account sees.
    pub account: Option<AccountId>,
    pub name: Option<String>,
    pub shared: Option<bool>,
}

#[boxed_futures]
impl App {
    pub async fn create_ip_pool(
        &self,
        by: &Requester,
        request: NewPoolRequest,
    ) -> Result<Created<PoolView>, AccountRefusal> {
        let operation = Operation::IpPoolsCreate;
        permit(&by.actor, operation, Subject::Installation)
            .map_err(AccountRefusal::from_denial_on(ObjectKind::IpPool))?;
        if let Some(id) = self.find_created_id(request.account, request.idempotency_key.as_ref()).await? {
            let value = self.find_ip_pool(by, operation, PoolId(id)).await?;
            return Ok(Created { value, is_replay: true });
        }
        if let Some(problem) = names::find_problem(&request.name) {
            return Err(AccountRefusal::problem("name", problem));
        }
        if let Some(account) = request.account {
            self.permitted_account_id(by, operation, Some(account)).await?;
            if request.shared {
                return Err(AccountRefusal::problem("shared", "pools belong to no account"));
            }
        }
        let name = request.name.trim().to_owned();
        let subject = AuditSubject::NewPool(name.clone());
        let key = request
            .idempotency_key
            .as_ref()
            .map(|key| (request.account.unwrap_or(postroad_store::INSTALLATION), key));
        let store = self.audited_store_for_creation(by, operation, subject, key);
        let created = match request.account {
            Some(account) => store.create_pool_for(name, account).await,
            None => store.create_pool(name, request.shared).await,
        };
        // A concurrent call with the same idempotency key may have created the pool.
        if matches!(created, Err(StoreError::Conflict))
            && let Some(id) = self.find_created_id(request.account, request.idempotency_key.as_ref()).await?
        {
            let value = self.find_ip_pool(by, operation, PoolId(id)).await?;
            return Ok(Created { value, is_replay: true });
        }
        let pool = created.map_err(AccountRefusal::from_store_error_on(ObjectKind::IpPool))?;
        self.forget_setup();
        Ok(Created { value: PoolView { pool, addresses: Vec::new() }, is_replay: false })
    }

    /// Returns a page ordered by id, and whether there are more. An account sees its own pools, the shared pool, and
    /// pools that its servers send from.
    pub async fn list_ip_pools(
        &self,
        by: &Requester,
        filter: PoolFilter,
        after: Option<PoolId>,
        limit: usize,
    ) -> Result<(Vec<PoolView>, bool), AccountRefusal> {
        let account = self.listed_account(by, Operation::IpPoolsList, filter.account).await?;
        let used = self.pools_used_by(account).await?;
        let store = &self.inner.store;
        let (pools, sources) = (store.list_pools().await?, store.list_sources().await?);
        let is_listed = |pool: &Pool| {
            account.is_none_or(|account| is_visible(pool, account, &used))
                && after.is_none_or(|after| pool.id > after)
                && filter.name.as_ref().is_none_or(|name| pool.name == *name)
                && filter.shared.is_none_or(|shared| pool.shared == shared)
        };
        let mut pools: Vec<Pool> = pools.into_iter().filter(is_listed).take(limit + 1).collect();
        let has_more = pools.len() > limit;
        pools.truncate(limit);
        let (days, now) = (self.inner.warm_up_days, self.inner.clock.now());
        let view = |pool| PoolView::of(pool, &sources, &by.actor, days, now);
        Ok((pools.into_iter().map(view).collect(), has_more))
    }

    /// A pool on which the actor may perform `operation`.
    pub async fn find_ip_pool(
        &self,
        by: &Requester,
        operation: Operation,
        id: PoolId,
    ) -> Result<PoolView, AccountRefusal> {
        permit_any(&by.actor, operation).map_err(AccountRefusal::Denied)?;
        let store = &self.inner.store;
        let pool = store.list_pools().await?.into_iter().find(|pool| pool.id == id);
        let subject = self.pool_subject(by, operation, pool.as_ref()).await?;
        permit(&by.actor, operation, subject).map_err(AccountRefusal::from_denial_on(ObjectKind::IpPool))?;
        let pool = pool.ok_or(AccountRefusal::NotFound(ObjectKind::IpPool))?;
        let sources = store.list_sources().await?;
        Ok(PoolView::of(pool, &sources, &by.actor, self.inner.warm_up_days, self.inner.clock.now()))
    }

    /// Deletes a pool. Refused while it has addresses or a server uses it.
    pub async fn delete_ip_pool(&self, by: &Requester, id: PoolId) -> Result<PoolView, AccountRefusal> {
        let operation = Operation::IpPoolsDelete;
        let found = self.find_ip_pool(by, operation, id).await?;
        let store = self.audited_store(by, operation, AuditSubject::Pool(id));
        store.delete_pool(id).await.map_err(|error| match error {
            StoreError::InUse => AccountRefusal::PoolInUse,
            other => AccountRefusal::from_store_error_on(ObjectKind::IpPool)(other),
        })?;
        self.forget_setup();
        Ok(found)
    }

    /// The subject for `permit`: the owner of the pool, or `Absent` without a pool. For a read, an account that may see
    /// the pool counts as its owner. Makes the same reads for every id, so that the time does not reveal which pools
    /// exist.
    pub(super) async fn pool_subject(
        &self,
        by: &Requester,
        operation: Operation,
        pool: Option<&Pool>,
    ) -> Result<Subject, StoreError> {
        let reader = by.actor.account_id().filter(|_| operation.is_read());
        let used = self.pools_used_by(reader).await?;
        let Some(pool) = pool else { return Ok(Subject::Absent) };
        Ok(match (reader, pool.account_id) {
            (Some(reader), _) if is_visible(pool, reader, &used) => Subject::Account(reader),
            (_, Some(owner)) => Subject::Account(owner),
            (_, None) => Subject::Installation,
        })
    }

    async fn pools_used_by(&self, account: Option<AccountId>) -> Result<HashSet<PoolId>, StoreError> {
        match account {
            Some(account) => Ok(self.inner.store.list_pools_used_by(account).await?.into_iter().collect()),
            None => Ok(HashSet::new()),
        }
    }
}

fn is_visible(pool: &Pool, account: AccountId, used: &HashSet<PoolId>) -> bool {
    pool.account_id == Some(account) || pool.shared || used.contains(&pool.id)
}
