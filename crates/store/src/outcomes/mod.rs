//! Outcomes of delivery attempts, and their delivery records.

pub(crate) mod append;
pub(crate) mod deliveries;
mod finish;
pub(crate) mod outcome;
pub(crate) mod source_tally;

pub use deliveries::{Delivery, NewDelivery};
pub use outcome::Outcome;
