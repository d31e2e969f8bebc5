//! Retention: remove expired data in small steps.

pub(crate) mod bodies;
mod bounds;
mod counters;
pub(crate) mod removal;
mod rows;

pub use removal::{OldRows, Removal, Removed};
