//! Pools of source addresses, and the pool that a server's messages use.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use postroad_model::{PoolId, SourceId, Timestamp};
use postroad_store::DeliverySetup;

use super::warm_up::WarmUpPlan;

/// The pool that is used if neither message nor server has a pool with addresses, and there is no shared pool with
/// addresses. The operating system then chooses the address.
pub(crate) const DEFAULT_POOL: PoolId = PoolId(0);
const DEFAULT_SOURCE: SourceId = SourceId(0);
/// Placeholder for the address that the operating system chooses.
pub(super) const ANY_ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

/// One source address.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub(crate) id: SourceId,
    /// `None`: the operating system chooses.
    pub(crate) address: Option<IpAddr>,
    pub(crate) helo: String,
    pub(crate) weight: f64,
    /// The name of its pool; `None` if the operating system chooses the address.
    pub(crate) pool: Option<Arc<str>>,
    /// Messages that this address may send today to each receiver group; `None` for no limit.
    pub(super) quota: Option<u32>,
    /// Why the address's warm-up is paused.
    pub(super) paused_reason: Option<String>,
}

impl Source {
    pub(crate) fn name(&self) -> String {
        self.address.map_or_else(|| "default".to_owned(), |address| address.to_string())
    }

    /// The address by which gates name the source.
    pub(super) fn scope_address(&self) -> IpAddr {
        self.address.unwrap_or(ANY_ADDRESS)
    }
}

/// Key by which warm-up counts a message: source address and receiver group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountedSource {
    pub(crate) id: SourceId,
    /// Name of the receiver group.
    pub(crate) provider: Arc<str>,
}

/// Messages by address and receiver group.
type Counts = HashMap<SourceId, HashMap<Arc<str>, i64>>;

#[derive(Debug)]
pub(super) struct Sources {
    default_helo: String,
    plan: WarmUpPlan,
    pools: HashMap<PoolId, Pool>,
    /// The pool of servers without one of their own, also for messages that a warming address may not take.
    shared: Option<PoolId>,
    by_id: HashMap<SourceId, Arc<Source>>,
    /// Messages sent today.
    sent: Counts,
    /// Messages given to connections and not settled yet, so not in the store's counts.
    being_sent: Counts,
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
            sent: HashMap::new(),
            being_sent: HashMap::new(),
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
            quota: None,
            paused_reason: None,
        };
        self.pools.insert(DEFAULT_POOL, Pool { name: "default".to_owned(), sources: vec![DEFAULT_SOURCE] });
        self.by_id.insert(DEFAULT_SOURCE, Arc::new(source));
    }

    pub(super) fn configure(&mut self, setup: &DeliverySetup, now: Timestamp) {
        self.pools.clear();
        self.by_id.clear();
        self.sent.clear();
        self.add_default();
        self.shared = setup.pools.iter().find(|pool| pool.shared).map(|pool| pool.id);
        for pool in &setup.pools {
            self.pools.insert(pool.id, Pool { name: pool.name.clone(), sources: Vec::new() });
        }
        for source in &setup.sources {
            let by_provider = source.today_by_provider.iter();
            let sent = by_provider.map(|(provider, counts)| (provider.as_str().into(), counts.sent as i64));
            self.sent.insert(source.id, sent.collect());
            let configured = Source {
                id: source.id,
                address: Some(source.address),
                helo: source.helo.as_str().to_owned(),
                weight: f64::from(source.weight.max(1)),
                pool: self.pools.get(&source.pool_id).map(|pool| pool.name.as_str().into()),
                quota: self.plan.quota(source, now),
                paused_reason: source.warmup_paused_reason.clone(),
            };
            self.by_id.insert(source.id, Arc::new(configured));
            if let Some(pool) = self.pools.get_mut(&source.pool_id) {
                pool.sources.push(source.id);
            }
        }
    }

    /// The pool of a message: its own, the server's, the shared one, or the default. The shared pool is used instead
    /// while no address of the chosen pool may send. It is also used if `last_source`, the address of the last attempt,
    /// belongs to it because the message overflowed from a pool that is warming up.
    pub(super) fn choose_pool(
        &self,
        message_pool: Option<PoolId>,
        server_pool: Option<PoolId>,
        last_source: Option<SourceId>,
    ) -> PoolId {
        let has_sources = |pool: &PoolId| self.pools.get(pool).is_some_and(|pool| !pool.sources.is_empty());
        let candidates = [message_pool, server_pool, self.shared];
        let chosen = candidates.into_iter().flatten().find(has_sources).unwrap_or(DEFAULT_POOL);
        let can_send =
            |source: &Arc<Source>| last_source.is_some_and(|id| id == source.id) && source.quota != Some(0);
        let is_warming = || self.of_pool(chosen).all(|source| source.quota.is_some());
        match self.shared {
            Some(shared) if last_source.is_some() && is_warming() && self.of_pool(shared).any(can_send) => {
                shared
            }
            Some(shared) if self.is_closed(chosen) && has_sources(&shared) => shared,
            _ => chosen,
        }
    }

    /// The pool that takes the messages which this pool may not send to these receivers today.
    pub(super) fn overflow_of(&self, pool: PoolId, provider: &str) -> Option<PoolId> {
        let shared =
            self.shared.filter(|shared| *shared != pool && self.of_pool(*shared).next().is_some())?;
        self.is_exhausted(pool, provider).then_some(shared)
    }

    /// Whether all addresses of a pool have used up today's quota for these receivers.
    pub(super) fn is_exhausted(&self, pool: PoolId, provider: &str) -> bool {
        let mut sources = self.of_pool(pool).peekable();
        sources.peek().is_some() && sources.all(|source| self.has_sent_quota(source, provider))
    }

    /// Whether no address of the pool may send anything today.
    fn is_closed(&self, pool: PoolId) -> bool {
        let mut sources = self.of_pool(pool).peekable();
        sources.peek().is_some() && sources.all(|source| source.quota == Some(0))
    }

    /// Whether an address has used up today's quota for these receivers.
    pub(super) fn has_sent_quota(&self, source: &Source, provider: &str) -> bool {
        let count =
            |counts: &Counts| counts.get(&source.id).and_then(|of| of.get(provider)).copied().unwrap_or(0);
        source.quota.is_some_and(|quota| count(&self.sent) + count(&self.being_sent) >= i64::from(quota))
    }

    pub(super) fn of_pool(&self, pool: PoolId) -> impl Iterator<Item = &Arc<Source>> {
        self.pools.get(&pool).into_iter().flat_map(|pool| &pool.sources).filter_map(|id| self.by_id.get(id))
    }

    pub(super) fn pool_name(&self, pool: PoolId) -> &str {
        self.pools.get(&pool).map_or("default", |pool| &pool.name)
    }

    /// The address by which gates and notes name a source; `ANY_ADDRESS` if the source is unknown.
    pub(super) fn scope_address(&self, source: SourceId) -> IpAddr {
        self.find(source).map_or(ANY_ADDRESS, |source| source.scope_address())
    }

    pub(super) fn find(&self, id: SourceId) -> Option<&Arc<Source>> {
        self.by_id.get(&id)
    }

    /// A message is given to this source.
    pub(super) fn on_given(&mut self, source: &CountedSource) {
        *count(&mut self.being_sent, source) += 1;
    }

    /// The outcome of a message is stored. The message counts only if it was sent.
    pub(super) fn on_settled(&mut self, source: &CountedSource, was_sent: bool) {
        *count(&mut self.being_sent, source) -= 1;
        if was_sent {
            *count(&mut self.sent, source) += 1;
        }
    }
}

fn count<'a>(counts: &'a mut Counts, source: &CountedSource) -> &'a mut i64 {
    counts.entry(source.id).or_default().entry(Arc::clone(&source.provider)).or_default()
}
