//! Pools of source addresses, and which pool a server's messages leave from.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use postroad_model::{PoolId, SourceId, Timestamp};
use postroad_store::DeliverySetup;

use super::warm_up::WarmUpPlan;

/// Used where no pool is set up: the machine chooses the address.
pub(crate) const DEFAULT_POOL: PoolId = PoolId(0);
const DEFAULT_SOURCE: SourceId = SourceId(0);
/// Stands for the address that the machine chooses.
pub(super) const ANY_ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

/// One address that mail leaves from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub(crate) id: SourceId,
    /// `None`: whatever the machine chooses.
    pub(crate) address: Option<IpAddr>,
    pub(crate) helo: String,
    pub(crate) weight: f64,
    /// The name of its pool; `None` for the machine's choice.
    pub(crate) pool: Option<Arc<str>>,
    /// Messages that it may still send today; `None` without a limit.
    pub(super) quota_left: Option<i64>,
    /// Why its warm-up is paused.
    pub(super) paused_reason: Option<String>,
}

impl Source {
    pub(crate) fn name(&self) -> String {
        self.address.map_or_else(|| "default".to_owned(), |address| address.to_string())
    }

    /// As gates name it.
    pub(super) fn scope_address(&self) -> IpAddr {
        self.address.unwrap_or(ANY_ADDRESS)
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.quota_left.is_some_and(|left| left <= 0)
    }
}

#[derive(Debug)]
pub(super) struct Sources {
    default_helo: String,
    plan: WarmUpPlan,
    pools: HashMap<PoolId, Pool>,
    /// Where messages go that a warming address may not take.
    shared: Option<PoolId>,
    by_id: HashMap<SourceId, Arc<Source>>,
    /// Handed out and not settled yet, so not in the store's counts.
    in_flight: HashMap<SourceId, i64>,
}

#[derive(Debug)]
struct Pool {
    name: String,
    sources: Vec<SourceId>,
}

impl Sources {
    pub(super) fn new(default_helo: String, plan: WarmUpPlan) -> Self {
        let mut sources = Self {
            default_helo,
            plan,
            pools: HashMap::new(),
            shared: None,
            by_id: HashMap::new(),
            in_flight: HashMap::new(),
        };
        sources.add_default();
        sources
    }

    fn add_default(&mut self) {
        let source = Source {
            id: DEFAULT_SOURCE,
            address: None,
            helo: self.default_helo.clone(),
            weight: 1.0,
            pool: None,
            quota_left: None,
            paused_reason: None,
        };
        self.pools.insert(DEFAULT_POOL, Pool { name: "default".to_owned(), sources: vec![DEFAULT_SOURCE] });
        self.by_id.insert(DEFAULT_SOURCE, Arc::new(source));
    }

    pub(super) fn configure(&mut self, setup: &DeliverySetup, now: Timestamp) {
        self.pools.clear();
        self.by_id.clear();
        self.add_default();
        self.shared = setup.pools.iter().find(|pool| pool.shared).map(|pool| pool.id);
        for pool in &setup.pools {
            self.pools.insert(pool.id, Pool { name: pool.name.clone(), sources: Vec::new() });
        }
        for source in &setup.sources {
            let in_flight = self.in_flight.get(&source.id).copied().unwrap_or(0);
            let quota = self.plan.quota(source, now);
            let quota_left = quota.map(|quota| i64::from(quota) - source.sent_today as i64 - in_flight);
            let shown = Source {
                id: source.id,
                address: Some(source.address),
                helo: source.helo.as_str().to_owned(),
                weight: f64::from(source.weight.max(1)),
                pool: self.pools.get(&source.pool_id).map(|pool| pool.name.as_str().into()),
                quota_left,
                paused_reason: source.warmup_paused_reason.clone(),
            };
            self.by_id.insert(source.id, Arc::new(shown));
            if let Some(pool) = self.pools.get_mut(&source.pool_id) {
                pool.sources.push(source.id);
            }
        }
    }

    /// The pool that a message leaves from: its own wish, the server's, the shared one, or the machine's default; and
    /// the shared one while all addresses of that pool have done their day's work, or if `before`, the address of the
    /// last attempt, is there.
    pub(super) fn choose(
        &self,
        wish: Option<PoolId>,
        of_server: Option<PoolId>,
        before: Option<SourceId>,
    ) -> PoolId {
        let has_sources = |pool: &PoolId| self.pools.get(pool).is_some_and(|pool| !pool.sources.is_empty());
        let candidates = [wish, of_server, self.shared];
        let chosen = candidates.into_iter().flatten().find(has_sources).unwrap_or(DEFAULT_POOL);
        match self.shared {
            Some(shared)
                if before.is_some() && self.of_pool(shared).any(|source| Some(source.id) == before) =>
            {
                shared
            }
            Some(shared) if self.is_exhausted(chosen) && has_sources(&shared) => shared,
            _ => chosen,
        }
    }

    /// Whether it has an address that may send today.
    pub(super) fn can_send(&self, pool: PoolId) -> bool {
        self.of_pool(pool).any(|source| !source.is_exhausted())
    }

    pub(super) fn is_exhausted(&self, pool: PoolId) -> bool {
        self.of_pool(pool).next().is_some() && self.of_pool(pool).all(|source| source.is_exhausted())
    }

    pub(super) fn of_pool(&self, pool: PoolId) -> impl Iterator<Item = &Arc<Source>> {
        self.pools.get(&pool).into_iter().flat_map(|pool| &pool.sources).filter_map(|id| self.by_id.get(id))
    }

    pub(super) fn pool_name(&self, pool: PoolId) -> &str {
        self.pools.get(&pool).map_or("default", |pool| &pool.name)
    }

    pub(super) fn find(&self, id: SourceId) -> Option<&Arc<Source>> {
        self.by_id.get(&id)
    }

    /// A message is handed to this source.
    pub(super) fn take(&mut self, id: SourceId) {
        *self.in_flight.entry(id).or_default() += 1;
        self.change_quota(id, -1);
    }

    /// Its outcome is stored. What was not sent does not count.
    pub(super) fn settled(&mut self, id: SourceId, sent: bool) {
        if let Some(count) = self.in_flight.get_mut(&id) {
            *count -= 1;
        }
        if !sent {
            self.change_quota(id, 1);
        }
    }

    fn change_quota(&mut self, id: SourceId, by: i64) {
        if let Some(source) = self.by_id.get_mut(&id)
            && source.quota_left.is_some()
            && let Some(left) = &mut Arc::make_mut(source).quota_left
        {
            *left += by;
        }
    }
}
