//! A pool as its users see it.

use postroad_model::Timestamp;
use postroad_store::{Pool, Source};

#[derive(Debug, Clone)]
pub struct PoolView {
    pub pool: Pool,
    pub addresses: Vec<AddressView>,
}

#[derive(Debug, Clone)]
pub struct AddressView {
    pub source: Source,
    pub warm_up: WarmUpState,
    /// Day of the warm-up plan, from 1; `None` for a warm address.
    pub warm_up_day: Option<u32>,
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

impl PoolView {
    /// `plan_days`: length of the warm-up plan.
    pub(super) fn of(pool: Pool, sources: &[Source], plan_days: u32, now: Timestamp) -> Self {
        let addresses = sources.iter().filter(|source| source.pool_id == pool.id);
        let addresses = addresses.map(|source| AddressView::of(source.clone(), plan_days, now)).collect();
        Self { pool, addresses }
    }
}

impl AddressView {
    fn of(source: Source, plan_days: u32, now: Timestamp) -> Self {
        let day = source.warmup_day(now);
        let warm_up = match (day, &source.warmup_paused_reason) {
            (None, _) => WarmUpState::None,
            (Some(_), Some(_)) => WarmUpState::Paused,
            (Some(day), None) if day >= plan_days => WarmUpState::Done,
            (Some(_), None) => WarmUpState::Running,
        };
        let warm_up_day = day.filter(|_| warm_up != WarmUpState::Done).map(|day| day.saturating_add(1));
        Self { source, warm_up, warm_up_day }
    }
}
