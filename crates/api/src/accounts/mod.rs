//! accounts/*: accounts, managed with operator keys.

pub(crate) mod account_out;
pub(crate) mod ceilings;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod suspend;
pub(crate) mod update;
