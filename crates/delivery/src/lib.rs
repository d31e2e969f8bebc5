//! The delivery engine: everything that is queued reaches its destination, or the sender learns why not.

pub mod inbox;
mod local_smtp;
pub mod simulator;

pub use inbox::{CaughtMessage, Inbox, InboxServer, Wanted};
pub use simulator::SimulatorServer;
