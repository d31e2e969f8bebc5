//! Messages and their bodies, as they are read back.

pub(crate) mod body;
pub(crate) mod message;

pub use body::StoredBody;
pub use message::{Message, MessageSummary};
