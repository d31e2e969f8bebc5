//! messages/*: calls that look up messages.

pub(crate) mod deliveries;
mod echoed_id;
mod expansions;
pub(crate) mod message;
mod message_out;

pub(crate) use echoed_id::EchoedId;
pub(crate) use message_out::MessageOut;
