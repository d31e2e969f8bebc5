//! Send rates of accounts: all servers of an account share its rate, and take turns.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use postroad_model::{AccountId, SendRate, ServerId, Timestamp};

use super::block::{Block, BlockCause};
use super::even_pace::EvenPace;

/// A server loses a turn that it does not use within this time: its messages may have expired, or their receiver may be
/// unreachable.
const TURN_LOST_AFTER: Duration = Duration::from_millis(200);

/// Accounts that have a send rate.
#[derive(Debug, Default)]
pub(super) struct AccountPaces {
    paces: HashMap<AccountId, AccountPace>,
}

#[derive(Debug)]
struct AccountPace {
    rate: SendRate,
    nodes: u32,
    even_pace: EvenPace,
    /// Servers waiting for the rate, in the order of their turns.
    turns: VecDeque<ServerId>,
    waiting: HashSet<ServerId>,
}

impl AccountPace {
    fn new(rate: SendRate, nodes: u32) -> Self {
        let even_pace = EvenPace::of_rate(rate, nodes);
        Self { rate, nodes, even_pace, turns: VecDeque::new(), waiting: HashSet::new() }
    }
}

impl AccountPaces {
    /// Sets or removes the rate of an account; returns whether it changed. Every node gets its share of a rate.
    pub(super) fn set(&mut self, account: AccountId, rate: Option<SendRate>, nodes: u32) -> bool {
        let current = self.paces.get(&account).map(|pace| (pace.rate, pace.nodes));
        if current == rate.map(|rate| (rate, nodes)) {
            return false;
        }
        match rate {
            Some(rate) => self.paces.insert(account, AccountPace::new(rate, nodes)),
            None => self.paces.remove(&account),
        };
        true
    }

    /// Divides all rates among this many nodes.
    pub(super) fn set_nodes(&mut self, nodes: u32) {
        for pace in self.paces.values_mut().filter(|pace| pace.nodes != nodes) {
            *pace = AccountPace::new(pace.rate, nodes);
        }
    }

    /// Blocks a server while the rate is used up, or while it is another server's turn.
    pub(super) fn block(&self, account: AccountId, server: ServerId, now: Timestamp) -> Option<Block> {
        let pace = self.paces.get(&account)?;
        let is_next = pace.turns.front().is_none_or(|next| *next == server);
        let free_at = pace.even_pace.free_at();
        let until = if is_next { free_at } else { free_at.plus(TURN_LOST_AFTER) };
        let cause = || BlockCause::AccountRate { rate: pace.rate.to_string() };
        (until > now).then(|| Block { until: Some(until), cause: cause() })
    }

    /// A server with a message to send was blocked: it gets a turn after the servers that already wait.
    pub(super) fn wait(&mut self, account: AccountId, server: ServerId) {
        if let Some(pace) = self.paces.get_mut(&account)
            && pace.waiting.insert(server)
        {
            pace.turns.push_back(server);
        }
    }

    /// Counts one message of this server. Returns when the next turn comes, and the server that has it.
    pub(super) fn count_message(
        &mut self,
        account: AccountId,
        server: ServerId,
        now: Timestamp,
    ) -> Option<(Timestamp, ServerId)> {
        let pace = self.paces.get_mut(&account)?;
        pace.even_pace.count_message(now);
        // Servers in front of this one have lost their turns. A server that was not waiting uses up the turn of the
        // server in front.
        let is_waiting = pace.waiting.contains(&server);
        while let Some(first) = pace.turns.pop_front() {
            pace.waiting.remove(&first);
            if first == server || !is_waiting {
                break;
            }
        }
        pace.turns.front().map(|next| (pace.even_pace.free_at(), *next))
    }

    pub(super) fn shift_back(&mut self, by: Duration) {
        for pace in self.paces.values_mut() {
            pace.even_pace.shift_back(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: AccountId = AccountId(7);
    const ONE: ServerId = ServerId(1);
    const TWO: ServerId = ServerId(2);

    fn paces(rate: &str) -> AccountPaces {
        let mut paces = AccountPaces::default();
        assert!(paces.set(ACCOUNT, SendRate::parse(rate), 1));
        paces
    }

    #[test]
    fn a_server_that_does_not_use_its_turn_loses_it() {
        let mut paces = paces("1/s");
        let start = Timestamp::from_micros(1_000_000);
        assert!(paces.block(ACCOUNT, TWO, start).is_none());
        assert_eq!(paces.count_message(ACCOUNT, TWO, start), None, "nobody waits");
        for server in [ONE, TWO] {
            assert!(paces.block(ACCOUNT, server, start).is_some());
            paces.wait(ACCOUNT, server);
        }
        let free_at = start.plus(Duration::from_millis(1_030));
        assert!(paces.block(ACCOUNT, ONE, free_at).is_none());
        assert_eq!(paces.block(ACCOUNT, TWO, free_at).unwrap().until, Some(free_at.plus(TURN_LOST_AFTER)));
        let later = free_at.plus(TURN_LOST_AFTER);
        assert!(paces.block(ACCOUNT, TWO, later).is_none());
        assert_eq!(paces.count_message(ACCOUNT, TWO, later), None, "the first server has lost its turn");
    }

    #[test]
    fn a_removed_rate_blocks_nobody() {
        let mut paces = paces("1/h");
        let start = Timestamp::from_micros(1_000_000);
        paces.count_message(ACCOUNT, ONE, start);
        let cause = paces.block(ACCOUNT, ONE, start).unwrap().cause.to_string();
        assert_eq!(cause, "the account's send rate of 1/h is used up");
        assert!(!paces.set(ACCOUNT, SendRate::parse("1/h"), 1), "nothing changed");
        assert!(paces.block(ACCOUNT, ONE, start).is_some());
        assert!(paces.set(ACCOUNT, None, 1));
        assert!(paces.block(ACCOUNT, ONE, start).is_none());
    }
}
