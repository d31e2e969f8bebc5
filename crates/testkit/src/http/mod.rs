//! HTTP from the client's side, over real sockets: a pooled client, and raw bytes for what no client would send.

mod client;
mod connect;
mod raw;

pub use client::{Client, Reply, RequestError};
pub use hyper::Method;
pub use raw::{raw, raw_to_end};
