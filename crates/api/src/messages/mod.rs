//! messages/*: calls that look up, change and erase messages.

pub(crate) mod actions;
pub(crate) mod cancel_hold;
pub(crate) mod deliveries;
mod echoed_id;
pub(crate) mod erase;
mod expansions;
pub(crate) mod message;
mod message_out;
pub(crate) mod release;
pub(crate) mod retry;
pub(crate) mod search;
pub(crate) mod timeline;

pub(crate) use echoed_id::EchoedId;
pub(crate) use message_out::MessageOut;
