//! The delivery engine from outside: real peers on the loopback, a real name server, the real binary between them.

mod fairness;
pub(crate) mod inbox;
mod kills;
mod limits;
mod mx;
mod outcomes;
mod outside;
mod refusals;
mod silence;
mod simulator;
mod smart_host;
mod stopping;
mod tls_demands;
mod unstorable;
mod waiting;
