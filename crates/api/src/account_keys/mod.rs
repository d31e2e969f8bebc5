//! account_keys/*: API keys of an account.

mod account_key_out;
pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod revoke;
