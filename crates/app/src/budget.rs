//! Budgets for work that outsiders can cause, in total and for each key, such as a network or a server. A used budget
//! refills at a constant rate.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Maximum number of keys remembered. When it is reached, keys with a full budget are forgotten. If too many remain,
/// only the total budget limits new keys.
const KEYS_MAX: usize = 4_096;

#[derive(Debug)]
pub(crate) struct Budget<K> {
    limits: BudgetLimits,
    state: Mutex<State<K>>,
}

/// Amounts in the unit of the budget: bytes, messages, requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BudgetLimits {
    pub(crate) all_max: usize,
    /// Maximum of one key.
    pub(crate) each_max: usize,
    /// Time in which an empty budget refills.
    pub(crate) refill: Duration,
}

#[derive(Debug)]
struct State<K> {
    all: Bucket,
    keys: HashMap<K, Bucket>,
}

/// An amount that refills at a constant rate.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    max: usize,
    left: usize,
    refill: Duration,
    /// Time up to which `left` has been refilled.
    refilled_until: Instant,
}

/// An amount taken from a budget. The unused part can be returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reservation<K> {
    key: K,
    amount: usize,
}

impl<K: Copy + Eq + Hash> Budget<K> {
    pub(crate) fn new(limits: BudgetLimits, now: Instant) -> Self {
        let all = Bucket::full(limits.all_max, limits.refill, now);
        Self { limits, state: Mutex::new(State { all, keys: HashMap::new() }) }
    }

    /// Reserves `amount` for `key`; `None` if less is left for the key or in total.
    pub(crate) fn reserve(&self, key: K, amount: usize, now: Instant) -> Option<Reservation<K>> {
        let BudgetLimits { each_max, refill, .. } = self.limits;
        let mut state = self.state.lock();
        let State { all, keys } = &mut *state;
        if keys.len() >= KEYS_MAX {
            keys.retain(|_, bucket| !bucket.is_full(now));
        }
        if keys.len() < KEYS_MAX || keys.contains_key(&key) {
            let bucket = keys.entry(key).or_insert_with(|| Bucket::full(each_max, refill, now));
            if !bucket.has(amount, now) {
                return None;
            }
        }
        if !all.has(amount, now) {
            return None;
        }
        all.left -= amount;
        if let Some(bucket) = keys.get_mut(&key) {
            bucket.left -= amount;
        }
        Some(Reservation { key, amount })
    }

    /// Returns the part of a reservation beyond `used` to the budget.
    pub(crate) fn return_unused(&self, reservation: Reservation<K>, used: usize) {
        let unused = reservation.amount.saturating_sub(used);
        let mut state = self.state.lock();
        state.all.add(unused);
        if let Some(bucket) = state.keys.get_mut(&reservation.key) {
            bucket.add(unused);
        }
    }
}

impl Bucket {
    fn full(max: usize, refill: Duration, now: Instant) -> Self {
        Self { max, left: max, refill, refilled_until: now }
    }

    fn has(&mut self, amount: usize, now: Instant) -> bool {
        self.refill(now);
        self.left >= amount
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.left == self.max
    }

    /// Adds the units that have accrued since the last call. Time for less than a whole unit counts at the next call;
    /// otherwise frequent calls would never refill a slow budget.
    fn refill(&mut self, now: Instant) {
        let nanos = now.saturating_duration_since(self.refilled_until).min(self.refill).as_nanos();
        let more = self.max as u128 * nanos / self.refill.as_nanos();
        if more == 0 {
            return;
        }
        self.add(usize::try_from(more).unwrap_or(usize::MAX));
        let used_nanos = more * self.refill.as_nanos() / self.max as u128;
        let used = Duration::from_nanos(u64::try_from(used_nanos).unwrap_or(u64::MAX));
        self.refilled_until = if nanos >= self.refill.as_nanos() { now } else { self.refilled_until + used };
    }

    fn add(&mut self, amount: usize) {
        self.left = self.left.saturating_add(amount).min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFILL: Duration = Duration::from_mins(1);
    const LIMITS: BudgetLimits = BudgetLimits { all_max: 256 << 20, each_max: 64 << 20, refill: REFILL };
    const REPORT_BYTES: usize = 16 << 20;

    #[test]
    fn one_key_uses_up_its_own_budget_only() {
        let now = Instant::now();
        let budget = Budget::new(LIMITS, now);
        for _ in 0..4 {
            assert!(budget.reserve(1, REPORT_BYTES, now).is_some());
        }
        assert!(budget.reserve(1, REPORT_BYTES, now).is_none());
        assert!(budget.reserve(2, REPORT_BYTES, now).is_some());
        assert!(budget.reserve(1, REPORT_BYTES, now + REFILL / 4).is_some(), "it refills");
    }

    #[test]
    fn a_slow_budget_refills_however_often_it_is_checked() {
        let start = Instant::now();
        let hourly = BudgetLimits { all_max: 60, each_max: 60, refill: Duration::from_hours(1) };
        let budget = Budget::new(hourly, start);
        assert!(budget.reserve(1, 60, start).is_some());
        let at = |second: u64| start + Duration::from_secs(second);
        let first = (1..200).find(|second| budget.reserve(1, 1, at(*second)).is_some());
        assert_eq!(first, Some(60));
    }

    #[test]
    fn many_keys_share_the_total_budget_and_unused_bytes_return_to_it() {
        let now = Instant::now();
        let budget = Budget::new(LIMITS, now);
        let taken: Vec<Reservation<u32>> =
            (0..16).map(|key| budget.reserve(key, REPORT_BYTES, now).unwrap()).collect();
        assert!(budget.reserve(100, REPORT_BYTES, now).is_none());
        budget.return_unused(taken[0], 1 << 10);
        assert!(budget.reserve(100, REPORT_BYTES - (1 << 10), now).is_some());
    }

    #[test]
    fn keys_are_forgotten_when_their_budget_is_full() {
        let now = Instant::now();
        let budget = Budget::new(LIMITS, now);
        for key in 0..10_000 {
            let reserved = budget.reserve(key, 1 << 10, now).unwrap();
            assert!(budget.state.lock().keys.len() <= KEYS_MAX);
            budget.return_unused(reserved, 1);
        }
        assert!(budget.reserve(20_000, 1 << 10, now + REFILL).is_some());
        assert_eq!(budget.state.lock().keys.len(), 1);
    }
}
