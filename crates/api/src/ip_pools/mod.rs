//! ip_pools/*: pools of source addresses.

pub(crate) mod add_address;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod pool_out;
pub(crate) mod remove_address;
mod shared_params;
pub(crate) mod update_address;
pub(crate) mod warm_up;
