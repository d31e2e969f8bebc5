//! HTTP clients over real sockets: a pooled one, and raw bytes for invalid requests.

mod client;
mod connect;
mod raw;

pub use bytes::Bytes;
pub use client::{Client, Reply, RequestError};
pub use hyper::Method;
pub use raw::{raw, raw_to_end};
