//! Budgets for work that outsiders can cause, in total and per sending network: bytes of unpacked reports, reports
//! stored, mail forwarded to the operator.
//!
//! When a budget is used up, mail is refused temporarily (451), and the senders retry.

use std::net::IpAddr;

use postroad_model::client_network;
use tokio::time::Instant;

use crate::budget::{Budget, BudgetLimits, Reservation};

#[derive(Debug)]
pub(super) struct NetworkBudget(Budget<IpAddr>);

impl NetworkBudget {
    pub(super) fn new(limits: BudgetLimits, now: Instant) -> Self {
        Self(Budget::new(limits, now))
    }

    /// Reserves `amount` for a message from `peer`; `None` if less is left for the network of `peer` or in total.
    pub(super) fn reserve(&self, peer: IpAddr, amount: usize, now: Instant) -> Option<Reservation<IpAddr>> {
        self.0.reserve(client_network(peer), amount, now)
    }

    /// Returns the unused part of a reservation to the budget.
    pub(super) fn return_unused(&self, reservation: Reservation<IpAddr>, used: usize) {
        self.0.return_unused(reservation, used);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn addresses_of_one_network_share_its_budget() {
        let now = Instant::now();
        let limits = BudgetLimits { all_max: 10, each_max: 1, refill: Duration::from_mins(1) };
        let budget = NetworkBudget::new(limits, now);
        let reserve = |peer: &str| budget.reserve(peer.parse().unwrap(), 1, now).is_some();
        assert!(reserve("2001:db8::1") && !reserve("2001:db8::2:0:0:1"));
        assert!(reserve("2001:db8:0:1::1") && reserve("192.0.2.1") && reserve("192.0.2.2"));
    }
}
