//! A pool as its users see it.

use postroad_model::Timestamp;
use postroad_store::{Pool, Source};

use crate::access::Actor;

#[derive(Debug, Clone)]
pub struct PoolView {
    pub pool: Pool,
    pub addresses: Vec<AddressView>,
}

#[derive(Debug, Clone)]
pub struct AddressView {
    pub source: Source,
    pub warm_up: WarmUpState,
    /// Day of the warm-up plan, from 1; `None` if the address is warm or the plan is over.
    pub warm_up_day: Option<u32>,
    /// Whether message counts may be shown: to the operator, and to the account that the pool is reserved for.
    pub shows_counts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUpState {
    /// The address is warm.
    None,
    Running,
    Paused,
    /// All days of the plan are over.
    Done,
}

impl WarmUpState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Done => "done",
        }
    }
}

/// Whether the actor may see the message counts of a pool.
pub(super) fn shows_counts(pool: &Pool, actor: &Actor) -> bool {
    actor.is_operator() || (pool.account_id.is_some() && pool.account_id == actor.account_id())
}

impl PoolView {
    /// The view of a pool for `actor`. `plan_days` is the length of the warm-up plan.
    pub(super) fn of(
        mut pool: Pool,
        sources: &[Source],
        actor: &Actor,
        plan_days: u32,
        now: Timestamp,
    ) -> Self {
        let shows_counts = shows_counts(&pool, actor);
        let addresses = sources.iter().filter(|source| source.pool_id == pool.id);
        let view = |source: &Source| AddressView::of(source.clone(), shows_counts, plan_days, now);
        let addresses = addresses.map(view).collect();
        // Other accounts whose servers use the pool do not learn which account the pool is reserved for.
        pool.account_id =
            pool.account_id.filter(|owner| actor.is_operator() || actor.account_id() == Some(*owner));
        Self { pool, addresses }
    }
}

impl AddressView {
    fn of(source: Source, shows_counts: bool, plan_days: u32, now: Timestamp) -> Self {
        let day = source.warmup_day(now);
        let warm_up = match (day, &source.warmup_paused_reason) {
            (None, _) => WarmUpState::None,
            (Some(_), Some(_)) => WarmUpState::Paused,
            (Some(day), None) if day >= plan_days => WarmUpState::Done,
            (Some(_), None) => WarmUpState::Running,
        };
        let warm_up_day = day.filter(|_| warm_up != WarmUpState::Done).map(|day| day.saturating_add(1));
        Self { source, warm_up, warm_up_day, shows_counts }
    }
}
