//! analytics/*: what happened to a server's mail, in numbers.

mod figures_out;
pub(crate) mod message;
mod question;
pub(crate) mod summary;
pub(crate) mod timeseries;
pub(crate) mod top;
