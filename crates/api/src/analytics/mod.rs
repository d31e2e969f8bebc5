//! analytics/*: statistics about a server's mail.

mod dimension_fields;
#[cfg(test)]
mod dimension_schemas;
#[cfg(test)]
mod filter_schema;
pub(crate) mod message;
mod metrics_out;
mod query_fields;
pub(crate) mod summary;
pub(crate) mod timeseries;
pub(crate) mod top;
