//! analytics/*: statistics about a server's mail.

mod dimension_fields;
mod figures_out;
pub(crate) mod message;
mod question;
pub(crate) mod summary;
pub(crate) mod timeseries;
pub(crate) mod top;
