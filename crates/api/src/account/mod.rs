//! account/*: the account of the key, or the account that an operator key names.

pub(crate) mod audit;
pub(crate) mod get;
pub(crate) mod update;
pub(crate) mod usage;
