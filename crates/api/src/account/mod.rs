//! account/*: the account of the key.

pub(crate) mod audit;
pub(crate) mod get;
pub(crate) mod update;
pub(crate) mod usage;
