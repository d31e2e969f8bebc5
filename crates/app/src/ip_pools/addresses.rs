//! Addresses of pools: HELO names, weights, warm-up.

use std::net::IpAddr;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainName, PoolId, Timestamp};
use postroad_store::{
    AuditSubject, INSTALLATION, NewSource, Pool, Source, SourceChange, SourceDay, StoreError, UpdateResult,
};

use super::view::{PoolView, shows_counts};
use crate::access::{Operation, permit, permit_any};
use crate::accounts::{AccountRefusal, Created, CreationKey, ObjectKind, Requester, page};
use crate::{App, FieldProblem, Refusal};

/// Maximum number of addresses of one pool.
const ADDRESSES_MAX: usize = 1_000;
const WEIGHT_MAX: u32 = 1_000;

#[derive(Debug, Clone)]
pub struct NewAddress {
    pub pool: PoolId,
    pub address: IpAddr,
    pub helo: String,
    pub weight: u32,
    /// Whether the address warms up: the address starts with few messages a day, and their number increases.
    pub warm_up: bool,
    pub idempotency_key: Option<CreationKey>,
}

/// `None` in `helo` or `weight` leaves the value as it is.
#[derive(Debug, Clone, Default)]
pub struct AddressChange {
    /// The version that the caller has seen.
    pub if_version: Option<i64>,
    pub helo: Option<String>,
    pub weight: Option<u32>,
}

/// Change of an address's warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUpChange {
    /// Begins with the first day of the plan.
    Start,
    /// The address sends nothing until the warm-up is resumed. The days of the pause do not count as days of the plan.
    Pause,
    Resume,
    /// Ends the warm-up: the address is warm.
    End,
}

impl WarmUpChange {
    pub const ALL: [(&'static str, Self); 4] =
        [("start", Self::Start), ("pause", Self::Pause), ("resume", Self::Resume), ("end", Self::End)];
}

#[boxed_futures]
impl App {
    /// Adds an address; returns the pool.
    pub async fn add_pool_address(
        &self,
        by: &Requester,
        request: NewAddress,
    ) -> Result<Created<PoolView>, AccountRefusal> {
        let operation = Operation::IpPoolsAddAddress;
        let pool = self.find_ip_pool(by, operation, request.pool).await?;
        if self.is_address_added(&pool.pool, request.idempotency_key.as_ref()).await? {
            return Ok(Created { value: pool, is_replay: true });
        }
        let (helo, weight) = check(Some(&request.helo), Some(request.weight))?;
        if pool.addresses.len() >= ADDRESSES_MAX {
            return Err(AccountRefusal::problem("pool", "has the maximum number of addresses"));
        }
        let address = request.address.to_canonical();
        let new = NewSource {
            pool_id: request.pool,
            address,
            helo: helo.ok_or_else(|| AccountRefusal::missing("helo"))?,
            weight: weight.unwrap_or(1),
            warmup_started_at: request.warm_up.then(|| self.inner.clock.now()),
        };
        let key = request.idempotency_key.as_ref().map(|key| (key_owner_of(&pool.pool), key));
        let store = self.audited_store_for_creation(by, operation, AuditSubject::NewSource(address), key);
        let added = store.add_source(new).await;
        self.forget_setup();
        // A concurrent call with the same idempotency key may have added the address.
        let is_replay = matches!(added, Err(StoreError::Conflict))
            && self.is_address_added(&pool.pool, request.idempotency_key.as_ref()).await?;
        if !is_replay {
            added.map_err(AccountRefusal::from_store_error_on(ObjectKind::IpAddress))?;
        }
        Ok(Created { value: self.find_ip_pool(by, operation, request.pool).await?, is_replay })
    }

    /// Whether an earlier call with the same idempotency key added the address. `NotFound` if the address was
    /// removed since.
    async fn is_address_added(&self, pool: &Pool, key: Option<&CreationKey>) -> Result<bool, AccountRefusal> {
        let Some(id) = self.find_created_id(Some(key_owner_of(pool)), key).await? else { return Ok(false) };
        let sources = self.inner.store.list_sources().await?;
        if sources.iter().any(|source| source.id.0 == id) {
            Ok(true)
        } else {
            Err(AccountRefusal::NotFound(ObjectKind::IpAddress))
        }
    }

    pub async fn update_pool_address(
        &self,
        by: &Requester,
        address: IpAddr,
        request: AddressChange,
    ) -> Result<PoolView, AccountRefusal> {
        let operation = Operation::IpPoolsUpdateAddress;
        let (source, _) = self.pool_address(by, operation, address).await?;
        let (helo, weight) = check(request.helo.as_deref(), request.weight)?;
        let store = self.audited_store(by, operation, AuditSubject::Source(source.id));
        let changed = store.update_source(source.id, request.if_version, SourceChange { helo, weight }).await;
        self.forget_setup();
        match changed.map_err(AccountRefusal::from_store_error_on(ObjectKind::IpAddress))? {
            UpdateResult::Done(()) => self.find_ip_pool(by, operation, source.pool_id).await,
            UpdateResult::OtherVersion(version) => Err(AccountRefusal::OtherVersion(version)),
        }
    }

    pub async fn remove_pool_address(
        &self,
        by: &Requester,
        address: IpAddr,
    ) -> Result<PoolView, AccountRefusal> {
        let operation = Operation::IpPoolsRemoveAddress;
        let (source, _) = self.pool_address(by, operation, address).await?;
        let store = self.audited_store(by, operation, AuditSubject::Source(source.id));
        store
            .remove_source(source.id)
            .await
            .map_err(AccountRefusal::from_store_error_on(ObjectKind::IpAddress))?;
        self.forget_setup();
        self.find_ip_pool(by, operation, source.pool_id).await
    }

    pub async fn change_warm_up(
        &self,
        by: &Requester,
        address: IpAddr,
        change: WarmUpChange,
    ) -> Result<PoolView, AccountRefusal> {
        let operation = Operation::IpPoolsWarmUp;
        let (source, _) = self.pool_address(by, operation, address).await?;
        if change == WarmUpChange::Pause && source.warmup_started_at.is_none() {
            return Err(AccountRefusal::problem("action", "`pause` is for an address that is warming up"));
        }
        let store = self.audited_store(by, operation, AuditSubject::Source(source.id));
        let changed = match change {
            WarmUpChange::Start => store.set_source_warmup(source.id, Some(self.inner.clock.now())).await,
            WarmUpChange::Pause => store.pause_warmup_by_hand(source.id, "paused by hand".to_owned()).await,
            WarmUpChange::Resume => store.resume_warmup(source.id).await,
            WarmUpChange::End => store.set_source_warmup(source.id, None).await,
        };
        changed.map_err(AccountRefusal::from_store_error_on(ObjectKind::IpAddress))?;
        self.forget_setup();
        self.find_ip_pool(by, operation, source.pool_id).await
    }

    /// Numbers of messages that an address sent per day and receiver group, by outcome; newest first, and whether
    /// there are more. Empty for an account that the pool is not reserved for.
    pub async fn pool_address_history(
        &self,
        by: &Requester,
        address: IpAddr,
        after: Option<(Timestamp, String)>,
        limit: usize,
    ) -> Result<(Vec<SourceDay>, bool), AccountRefusal> {
        let (source, pool) = self.pool_address(by, Operation::IpPoolsHistory, address).await?;
        if !shows_counts(&pool, &by.actor) {
            return Ok((Vec::new(), false));
        }
        Ok(page(self.inner.store.list_source_days(source.id, after, limit + 1).await?, limit))
    }

    /// An address on which the actor may perform `operation`, with its pool.
    async fn pool_address(
        &self,
        by: &Requester,
        operation: Operation,
        address: IpAddr,
    ) -> Result<(Source, Pool), AccountRefusal> {
        permit_any(&by.actor, operation).map_err(AccountRefusal::Denied)?;
        let (store, address) = (&self.inner.store, address.to_canonical());
        let source = store.list_sources().await?.into_iter().find(|source| source.address == address);
        let pool_id = source.as_ref().map(|source| source.pool_id);
        let pool = store.list_pools().await?.into_iter().find(|pool| Some(pool.id) == pool_id);
        let subject = self.pool_subject(by, operation, pool.as_ref()).await?;
        permit(&by.actor, operation, subject)
            .map_err(AccountRefusal::from_denial_on(ObjectKind::IpAddress))?;
        source.zip(pool).ok_or(AccountRefusal::NotFound(ObjectKind::IpAddress))
    }
}

/// Owner of a pool's idempotency keys: the account that the pool is for, or the installation.
fn key_owner_of(pool: &Pool) -> AccountId {
    pool.account_id.unwrap_or(INSTALLATION)
}

/// Checks the fields of an address and reports all problems at once.
fn check(
    helo: Option<&str>,
    weight: Option<u32>,
) -> Result<(Option<DomainName>, Option<u32>), AccountRefusal> {
    let mut problems = Vec::new();
    let helo = helo.and_then(|text| match DomainName::parse(text) {
        Ok(name) => Some(name),
        Err(error) => {
            problems.push(FieldProblem::new("/helo", format!("`helo`: {error}")));
            None
        }
    });
    if weight.is_some_and(|weight| !(1..=WEIGHT_MAX).contains(&weight)) {
        let message = format!("`weight` should be from 1 to {WEIGHT_MAX}");
        problems.push(FieldProblem::new("/weight", message));
    }
    if problems.is_empty() { Ok((helo, weight)) } else { Err(Refusal::Validation(problems).into()) }
}
