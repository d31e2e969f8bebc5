//! messages/*: calls that look up messages and change waiting ones.

pub(crate) mod actions;
pub(crate) mod cancel_hold;
pub(crate) mod deliveries;
mod echoed_id;
mod expansions;
pub(crate) mod message;
mod message_out;
pub(crate) mod release;
pub(crate) mod retry;
pub(crate) mod search;
pub(crate) mod timeline;

pub(crate) use echoed_id::EchoedId;
pub(crate) use message_out::MessageOut;
