//! One attempt in four steps: plan (`router`), connect, transact (`engine/worker/transaction.rs`), settle; each with a
//! typed result.

pub(crate) mod connect;
mod connect_progress;
pub(crate) mod connection;
pub(crate) mod dial;
pub(crate) mod earlier_greylisting;
pub(crate) mod ending;
mod event_data;
pub(crate) mod host_order;
mod judge;
pub(crate) mod report;
pub(crate) mod router;
pub(crate) mod settle;
pub(crate) mod stream;

pub(crate) use connect::{ConnectFailure, Connector};
pub(crate) use connect_progress::ConnectProgress;
pub(crate) use connection::{Connection, Peer};
pub(crate) use ending::Ending;
pub(crate) use router::{RouteFailure, Router};
