//! The verbs that both engines share: one body each, run on a `Sql` of either kind, inside one transaction.

pub(crate) mod accounts;
pub(crate) mod ceilings;
pub(crate) mod counter_reads;
pub(crate) mod counter_sets;
pub(crate) mod counters;
pub(crate) mod counting;
pub(crate) mod credentials;
pub(crate) mod recipient_providers;
pub(crate) mod server_change;
pub(crate) mod servers;
pub(crate) mod settings;
pub(crate) mod surplus;
pub(crate) mod tracking;
pub(crate) mod used_pools;
