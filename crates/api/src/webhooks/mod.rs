//! webhooks/*: webhooks, their attempts, samples and replays. Also the public key of webhooks in Postal's format.

mod attempt_out;
pub(crate) mod attempts;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod jwks;
pub(crate) mod list;
pub(crate) mod replay;
pub(crate) mod rotate_secret;
mod shared_params;
pub(crate) mod test;
pub(crate) mod update;
mod webhook_out;
