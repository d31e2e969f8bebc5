//! The delivery engine from outside: real peers on the loopback, a real name server, the real binary between them.

mod dane;
mod dead_node;
pub(crate) mod fairness;
mod feedback_signature;
mod gates;
mod hidden_limits;
pub(crate) mod inbox;
mod kills;
pub(crate) mod limits;
mod memory_limit;
mod mx;
mod orders;
mod outcomes;
pub(crate) mod outside;
mod pools;
mod queue_admin;
mod recovery;
mod refusals;
mod remembered_limits;
mod silence;
mod simulator;
mod smart_host;
mod stopping;
mod tls_demands;
mod trouble_elsewhere;
mod unstorable;
mod waiting;
