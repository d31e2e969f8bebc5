//! domains/*: domains to send from, their records and checks, DKIM keys, and receivers' reports.

pub(crate) mod create;
pub(crate) mod delete;
mod domain_out;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod reports;
pub(crate) mod rotate_dkim;
mod shared_params;
pub(crate) mod verify;
pub(crate) mod zone;
