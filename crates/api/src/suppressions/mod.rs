//! suppressions/*: addresses to which a server no longer sends.

pub(crate) mod add;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod remove;
pub(crate) mod shared_params;
mod suppression_out;
