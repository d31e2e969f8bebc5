//! Budget of unpacked report bytes, in total and per sending network. Anybody can mail a report, so the CPU
//! time for reading them must be bounded over time.
//!
//! When a budget is used up, reports are refused temporarily (451) and their senders retry.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use postroad_model::client_network;
use tokio::time::Instant;

const ALL_BYTES_MAX: usize = 256 << 20;
const NETWORK_BYTES_MAX: usize = 64 << 20;
/// Time in which an empty budget refills.
const REFILL: Duration = Duration::from_mins(1);
/// Networks remembered. Full budgets are forgotten; beyond this number, new networks share the total budget.
const NETWORKS_MAX: usize = 4_096;

#[derive(Debug)]
pub(super) struct ReportBudget {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    all: Bucket,
    networks: HashMap<IpAddr, Bucket>,
}

/// Bytes that refill at a constant rate.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    bytes_max: usize,
    bytes: usize,
    at: Instant,
}

/// Bytes reserved for one report. Unused bytes are given back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reservation {
    network: IpAddr,
    bytes: usize,
}

impl ReportBudget {
    pub(super) fn new(now: Instant) -> Self {
        let all = Bucket::full(ALL_BYTES_MAX, now);
        Self { state: Mutex::new(State { all, networks: HashMap::new() }) }
    }

    /// Reserves `bytes` for a report from `peer`; `None` if the budget has fewer left.
    pub(super) fn reserve(&self, peer: IpAddr, bytes: usize, now: Instant) -> Option<Reservation> {
        let network = client_network(peer);
        let mut state = self.lock();
        let State { all, networks } = &mut *state;
        if networks.len() >= NETWORKS_MAX {
            networks.retain(|_, bucket| !bucket.is_full(now));
        }
        if networks.len() < NETWORKS_MAX || networks.contains_key(&network) {
            let bucket = networks.entry(network).or_insert_with(|| Bucket::full(NETWORK_BYTES_MAX, now));
            if !bucket.has(bytes, now) {
                return None;
            }
        }
        if !all.has(bytes, now) {
            return None;
        }
        all.bytes -= bytes;
        if let Some(bucket) = networks.get_mut(&network) {
            bucket.bytes -= bytes;
        }
        Some(Reservation { network, bytes })
    }

    /// Gives back the bytes that a report did not use.
    pub(super) fn settle(&self, reservation: Reservation, bytes_used: usize) {
        let unused = reservation.bytes.saturating_sub(bytes_used);
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
    fn full(bytes_max: usize, now: Instant) -> Self {
        Self { bytes_max, bytes: bytes_max, at: now }
    }

    fn has(&mut self, bytes: usize, now: Instant) -> bool {
        self.refill(now);
        self.bytes >= bytes
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.bytes == self.bytes_max
    }

    fn refill(&mut self, now: Instant) {
        let nanos = now.saturating_duration_since(self.at).min(REFILL).as_nanos();
        let more = self.bytes_max as u128 * nanos / REFILL.as_nanos();
        self.add(usize::try_from(more).unwrap_or(usize::MAX));
        self.at = now;
    }

    fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes).min(self.bytes_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: usize = 16 << 20;

    fn peer(number: u32) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from_bits(number))
    }

    #[test]
    fn one_network_uses_up_its_own_budget_only() {
        let now = Instant::now();
        let budget = ReportBudget::new(now);
        for _ in 0..4 {
            assert!(budget.reserve(peer(1), REPORT, now).is_some());
        }
        assert!(budget.reserve(peer(1), REPORT, now).is_none());
        assert!(budget.reserve(peer(2), REPORT, now).is_some());
        assert!(budget.reserve(peer(1), REPORT, now + REFILL / 4).is_some(), "it refills");
    }

    #[test]
    fn many_networks_share_one_budget_and_unused_bytes_go_back() {
        let now = Instant::now();
        let budget = ReportBudget::new(now);
        let taken: Vec<Reservation> =
            (0..16).map(|number| budget.reserve(peer(number), REPORT, now).unwrap()).collect();
        assert!(budget.reserve(peer(100), REPORT, now).is_none());
        budget.settle(taken[0], 1 << 10);
        assert!(budget.reserve(peer(100), REPORT - (1 << 10), now).is_some());
    }

    #[test]
    fn networks_are_forgotten_when_their_budget_is_full() {
        let now = Instant::now();
        let budget = ReportBudget::new(now);
        for number in 0..10_000 {
            let reserved = budget.reserve(peer(number), 1 << 10, now).unwrap();
            assert!(budget.lock().networks.len() <= NETWORKS_MAX);
            budget.settle(reserved, 1);
        }
        assert!(budget.reserve(peer(20_000), 1 << 10, now + REFILL).is_some());
        assert_eq!(budget.lock().networks.len(), 1);
        let v6 = |text: &str| client_network(text.parse().unwrap());
        assert_eq!(v6("2001:db8::1"), v6("2001:db8::2:0:0:1"));
    }
}
