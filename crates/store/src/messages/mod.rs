//! Reads messages and their bodies.

pub(crate) mod body;
pub(crate) mod message;

pub use body::StoredBody;
pub use message::{Message, MessageSummary};
