//! Permissions: actors, operations, and the table of which actor may perform which operation. The API, SMTP and the
//! portal use this table; the command line may do everything.

mod actor;
mod operation;
mod permit;

pub use actor::Actor;
pub use operation::{Effect, Level, Operation};
pub(crate) use permit::permit_any;
pub use permit::{Denial, Subject, permit};
