//! The calls that look up messages.

pub(crate) mod deliveries;
mod expansions;
mod given_id;
pub(crate) mod message;
mod message_out;

pub(crate) use given_id::GivenId;
