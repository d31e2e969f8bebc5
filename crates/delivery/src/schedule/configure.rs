//! Applies the setup from the store: servers that changed, pools, addresses, gates and the number of nodes.

use std::collections::HashSet;

use postroad_model::{ServerId, Timestamp};
use postroad_store::{DeliverySetup, ServerDelivery, SetupMark, SourceCounts};

use super::Schedule;
use super::server_gate::ServerGate;

impl Schedule {
    /// Applies the setup, which is read every two seconds and after every change, but mostly stays the same. Work on
    /// every lane is done only if a change may affect every lane.
    pub(crate) fn configure(&mut self, setup: &DeliverySetup, now: Timestamp) {
        let changed_servers = self.configure_servers(&setup.servers, setup.live_nodes);
        let latest = without_servers_and_counts(setup);
        let is_warming = setup.sources.iter().any(|source| source.warmup_started_at.is_some());
        let has_same_limits = self.setup.as_ref().is_some_and(|old| {
            changed_servers.is_empty() && old.gates == latest.gates && old.live_nodes == latest.live_nodes
        });
        if !has_same_limits {
            self.return_sticky_to_queues();
        }
        if self.setup.as_ref() == Some(&latest) {
            if is_warming {
                self.sources.configure(setup, now);
                self.overflow(now);
            }
            for server in &changed_servers {
                self.readmit_server(*server, now);
            }
            if is_warming || !has_same_limits {
                self.pump_all(now);
            }
            return;
        }
        self.configure_sources_and_gates(setup, now);
        self.setup = Some(latest);
    }

    /// Returns the servers whose suspension, pool or rate changed, or whose account's rate did.
    fn configure_servers(&mut self, servers: &[ServerDelivery], nodes: u32) -> Vec<ServerId> {
        let mut changed_accounts = HashSet::new();
        for server in servers {
            if self.accounts.set(server.account_id, server.account_rate, nodes) {
                changed_accounts.insert(server.account_id);
            }
        }
        let mut changed = Vec::new();
        for server in servers {
            let gate = self.servers.entry(server.id).or_insert_with(|| ServerGate::new(server.id));
            if gate.configure(server, nodes) || changed_accounts.contains(&server.account_id) {
                changed.push(server.id);
            }
        }
        changed
    }

    fn configure_sources_and_gates(&mut self, setup: &DeliverySetup, now: Timestamp) {
        self.accounts.set_nodes(setup.live_nodes);
        for gate in self.servers.values_mut() {
            gate.set_nodes(setup.live_nodes);
        }
        self.sources.configure(setup, now);
        self.gates.replace(&setup.gates);
        self.wake_at_end_of_gates(now);
        for queue in self.queues.iter().map(|(id, _)| id).collect::<Vec<_>>() {
            self.refresh_paths(queue);
        }
        self.overflow(now);
        self.readmit_all(now);
    }
}

fn without_servers_and_counts(setup: &DeliverySetup) -> DeliverySetup {
    let mut sources = setup.sources.clone();
    for source in &mut sources {
        (source.sent_today, source.bounced_today, source.complained_today) = (0, 0, 0);
        source.warmup_counts = SourceCounts::default();
        source.today_by_provider.clear();
    }
    DeliverySetup {
        servers: Vec::new(),
        pools: setup.pools.clone(),
        sources,
        gates: setup.gates.clone(),
        live_nodes: setup.live_nodes,
        mark: SetupMark::default(),
    }
}
