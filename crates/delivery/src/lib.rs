//! The delivery engine: everything that is queued reaches its destination, or the sender learns why not.

pub mod inbox;
pub mod journal;
mod local_smtp;
pub mod pacing;
pub mod providers;
pub mod signing;
pub mod simulator;

pub use inbox::{CaughtMessage, Inbox, InboxServer, Wanted};
pub use simulator::SimulatorServer;
