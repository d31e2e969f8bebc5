//! Gate of one sending server: its suspension, and the paces of its own send rate and its account's.

use std::collections::BTreeSet;
use std::time::Duration;

use postroad_model::{AccountId, GateScope, SendRate, ServerId, Timestamp};
use postroad_store::ServerDelivery;

use super::account_pace::AccountPaces;
use super::block::{Block, BlockCause};
use super::even_pace::EvenPace;
use super::wait_cause::SeenBlock;

#[derive(Debug)]
pub(super) struct ServerGate {
    id: ServerId,
    pub(super) scope: [GateScope; 1],
    suspended_reason: Option<String>,
    pub(super) chosen_pool: Option<postroad_model::PoolId>,
    /// Send rate, number of nodes that share it, and the pace of this node.
    rate: Option<(SendRate, u32, EvenPace)>,
    /// The server's account, if the account has a send rate.
    pub(super) paced_account: Option<AccountId>,
    /// Site queues from whose ring (`site_queue.rs`) the server was removed.
    pub(super) removed_from_rings: BTreeSet<usize>,
    /// The site queue that the server was readmitted to last, if it has a send rate.
    pub(super) last_readmitted: usize,
    /// Time of the server's next wake-up.
    pub(super) wake_at: Option<Timestamp>,
    pub(super) last_block: Option<SeenBlock>,
}

impl ServerGate {
    pub(super) fn new(id: ServerId) -> Self {
        Self {
            id,
            scope: [GateScope::Server(id)],
            suspended_reason: None,
            chosen_pool: None,
            rate: None,
            paced_account: None,
            removed_from_rings: BTreeSet::new(),
            last_readmitted: 0,
            wake_at: None,
            last_block: None,
        }
    }

    /// Applies the server's stored settings; returns whether they have changed.
    pub(super) fn configure(&mut self, server: &ServerDelivery, nodes: u32) -> bool {
        let paced_account = server.account_rate.map(|_| server.account_id);
        let is_same = self.suspended_reason == server.suspended_reason
            && self.chosen_pool == server.pool_id
            && self.paced_account == paced_account;
        self.suspended_reason.clone_from(&server.suspended_reason);
        self.chosen_pool = server.pool_id;
        self.paced_account = paced_account;
        let has_new_rate = self.set_rate(server.send_rate, nodes);
        has_new_rate || !is_same
    }

    /// Sets the pace of this node, which gets its share of the rate. Returns whether the rate or `nodes` changed.
    fn set_rate(&mut self, rate: Option<SendRate>, nodes: u32) -> bool {
        let current = self.rate.as_ref().map(|(rate, nodes, _)| (*rate, *nodes));
        if current == rate.map(|rate| (rate, nodes)) {
            return false;
        }
        self.rate = rate.map(|rate| (rate, nodes, EvenPace::of_rate(rate, nodes)));
        true
    }

    /// Divides the rate among this many nodes.
    pub(super) fn set_nodes(&mut self, nodes: u32) {
        self.set_rate(self.rate.as_ref().map(|(rate, ..)| *rate), nodes);
    }

    /// Whether the server or its account has a send rate, so that messages pass one at a time.
    pub(super) fn has_rate(&self) -> bool {
        self.rate.is_some() || self.paced_account.is_some()
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.suspended_reason.is_some()
    }

    pub(super) fn block(&self, accounts: &AccountPaces, now: Timestamp) -> Option<Block> {
        if let Some(reason) = &self.suspended_reason {
            return Some(Block {
                until: None,
                cause: BlockCause::ServerSuspended { reason: reason.clone() },
            });
        }
        self.rate_block(now).or_else(|| accounts.block(self.paced_account?, self.id, now))
    }

    fn rate_block(&self, now: Timestamp) -> Option<Block> {
        let (rate, _, pace) = self.rate.as_ref()?;
        let until = pace.blocked_until(now)?;
        Some(Block { until: Some(until), cause: BlockCause::ServerRate { rate: rate.to_string() } })
    }

    pub(super) fn shift_back(&mut self, by: Duration) {
        self.wake_at = None;
        if let Some((_, _, pace)) = &mut self.rate {
            pace.shift_back(by);
        }
    }

    pub(super) fn count_message(&mut self, now: Timestamp) {
        if let Some((_, _, pace)) = &mut self.rate {
            pace.count_message(now);
        }
    }
}
