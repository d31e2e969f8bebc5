//! servers/*: the servers of an account, managed with account keys.

mod account_server_out;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod suspend;
pub(crate) mod update;
