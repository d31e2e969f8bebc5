//! credentials/*: API keys and secrets of an account's servers, managed with account keys.

pub(crate) mod create;
mod credential_out;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod revoke;
pub(crate) mod rotate;
pub(crate) mod update;
