//! server/*: the settings of the key's own server.

pub(crate) mod get;
mod server_out;
pub(crate) mod update;

pub(crate) use server_out::ServerOut;
pub(crate) use update::{LimitIn, RetentionIn, TrackingIn, read_settings};
