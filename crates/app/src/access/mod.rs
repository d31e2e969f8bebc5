//! Permissions: actors, operations, and the table of which actor may perform which operation. API, portal and command
//! line all use this table and add no rules of their own.

mod actor;
mod operation;
mod permit;

pub use actor::Actor;
pub use operation::{Effect, Level, Operation};
pub(crate) use permit::permit_any;
pub use permit::{Denial, Subject, permit};
