//! Retention: removes expired data in small steps.

pub(crate) mod bodies;
mod bounds;
mod counters;
pub(crate) mod old_rows;
pub(crate) mod removal;
mod rows;

pub use old_rows::OldRows;
pub use removal::{Removal, RemovalProgress};
