//! Who may do what: actors, operations, and the one table that says which actor may do which operation. API,
//! portal and command line ask it and add nothing of their own.

mod actor;
mod operation;
mod permit;

pub use actor::Actor;
pub use operation::{Effect, Level, Operation};
pub(crate) use permit::permit_any;
pub use permit::{Denial, Subject, permit};
