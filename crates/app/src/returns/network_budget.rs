//! Budgets for work that outsiders can cause, in total and per sending network: bytes of unpacked reports, reports
//! stored, mail forwarded to the operator.
//!
//! When a budget is used up, mail is refused temporarily (451), and the senders retry.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use postroad_model::client_network;
use tokio::time::Instant;

/// Maximum number of networks remembered; networks with a full budget are forgotten. Beyond this number, new networks
/// share the total budget.
const NETWORKS_MAX: usize = 4_096;

#[derive(Debug)]
pub(super) struct NetworkBudget {
    limits: BudgetLimits,
    state: Mutex<State>,
}

/// Amounts in the unit of the budget: bytes, messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct BudgetLimits {
    pub(super) all_max: usize,
    pub(super) network_max: usize,
    /// Time in which an empty budget refills.
    pub(super) refill: Duration,
}

#[derive(Debug)]
struct State {
    all: Bucket,
    networks: HashMap<IpAddr, Bucket>,
}

/// An amount that refills at a constant rate.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    max: usize,
    left: usize,
    refill: Duration,
    /// Time up to which `left` has been refilled.
    at: Instant,
}

/// Reservation for one message. The unused part is returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reservation {
    network: IpAddr,
    amount: usize,
}

impl NetworkBudget {
    pub(super) fn new(limits: BudgetLimits, now: Instant) -> Self {
        let all = Bucket::full(limits.all_max, limits.refill, now);
        Self { limits, state: Mutex::new(State { all, networks: HashMap::new() }) }
    }

    /// Reserves `amount` for a message from `peer`; `None` if the budget has less left.
    pub(super) fn reserve(&self, peer: IpAddr, amount: usize, now: Instant) -> Option<Reservation> {
        let network = client_network(peer);
        let BudgetLimits { network_max, refill, .. } = self.limits;
        let mut state = self.lock();
        let State { all, networks } = &mut *state;
        if networks.len() >= NETWORKS_MAX {
            networks.retain(|_, bucket| !bucket.is_full(now));
        }
        if networks.len() < NETWORKS_MAX || networks.contains_key(&network) {
            let bucket = networks.entry(network).or_insert_with(|| Bucket::full(network_max, refill, now));
            if !bucket.has(amount, now) {
                return None;
            }
        }
        if !all.has(amount, now) {
            return None;
        }
        all.left -= amount;
        if let Some(bucket) = networks.get_mut(&network) {
            bucket.left -= amount;
        }
        Some(Reservation { network, amount })
    }

    /// Returns the unused part to the budget.
    pub(super) fn return_unused(&self, reservation: Reservation, used: usize) {
        let unused = reservation.amount.saturating_sub(used);
        let mut state = self.lock();
        state.all.add(unused);
        if let Some(bucket) = state.networks.get_mut(&reservation.network) {
            bucket.add(unused);
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Bucket {
    fn full(max: usize, refill: Duration, now: Instant) -> Self {
        Self { max, left: max, refill, at: now }
    }

    fn has(&mut self, amount: usize, now: Instant) -> bool {
        self.refill(now);
        self.left >= amount
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.left == self.max
    }

    /// Adds the units since the last call. Time for less than a whole unit counts at the next call; otherwise frequent calls
    /// would never refill a slow budget.
    fn refill(&mut self, now: Instant) {
        let nanos = now.saturating_duration_since(self.at).min(self.refill).as_nanos();
        let more = self.max as u128 * nanos / self.refill.as_nanos();
        if more == 0 {
            return;
        }
        self.add(usize::try_from(more).unwrap_or(usize::MAX));
        let used_nanos = more * self.refill.as_nanos() / self.max as u128;
        let used = Duration::from_nanos(u64::try_from(used_nanos).unwrap_or(u64::MAX));
        self.at = if nanos >= self.refill.as_nanos() { now } else { self.at + used };
    }

    fn add(&mut self, amount: usize) {
        self.left = self.left.saturating_add(amount).min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFILL: Duration = Duration::from_mins(1);
    const LIMITS: BudgetLimits = BudgetLimits { all_max: 256 << 20, network_max: 64 << 20, refill: REFILL };
    const REPORT: usize = 16 << 20;

    fn peer(number: u32) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from_bits(number))
    }

    #[test]
    fn one_network_uses_up_its_own_budget_only() {
        let now = Instant::now();
        let budget = NetworkBudget::new(LIMITS, now);
        for _ in 0..4 {
            assert!(budget.reserve(peer(1), REPORT, now).is_some());
        }
        assert!(budget.reserve(peer(1), REPORT, now).is_none());
        assert!(budget.reserve(peer(2), REPORT, now).is_some());
        assert!(budget.reserve(peer(1), REPORT, now + REFILL / 4).is_some(), "it refills");
    }

    #[test]
    fn a_slow_budget_refills_however_often_it_is_asked() {
        let start = Instant::now();
        let hourly = BudgetLimits { all_max: 60, network_max: 60, refill: Duration::from_hours(1) };
        let budget = NetworkBudget::new(hourly, start);
        assert!(budget.reserve(peer(1), 60, start).is_some());
        let at = |second: u64| start + Duration::from_secs(second);
        let first = (1..200).find(|second| budget.reserve(peer(1), 1, at(*second)).is_some());
        assert_eq!(first, Some(60));
    }

    #[test]
    fn many_networks_share_one_budget_and_unused_bytes_go_back() {
        let now = Instant::now();
        let budget = NetworkBudget::new(LIMITS, now);
        let taken: Vec<Reservation> =
            (0..16).map(|number| budget.reserve(peer(number), REPORT, now).unwrap()).collect();
        assert!(budget.reserve(peer(100), REPORT, now).is_none());
        budget.return_unused(taken[0], 1 << 10);
        assert!(budget.reserve(peer(100), REPORT - (1 << 10), now).is_some());
    }

    #[test]
    fn networks_are_forgotten_when_their_budget_is_full() {
        let now = Instant::now();
        let budget = NetworkBudget::new(LIMITS, now);
        for number in 0..10_000 {
            let reserved = budget.reserve(peer(number), 1 << 10, now).unwrap();
            assert!(budget.lock().networks.len() <= NETWORKS_MAX);
            budget.return_unused(reserved, 1);
        }
        assert!(budget.reserve(peer(20_000), 1 << 10, now + REFILL).is_some());
        assert_eq!(budget.lock().networks.len(), 1);
        let v6 = |text: &str| client_network(text.parse().unwrap());
        assert_eq!(v6("2001:db8::1"), v6("2001:db8::2:0:0:1"));
    }
}
