//! server/*: the settings of the key's own server.

pub(crate) mod get;
mod server_out;
pub(crate) mod update;

pub(crate) use server_out::{RetentionCeilingsOut, ServerOut};
pub(crate) use update::{
    LimitIn, RetentionIn, TrackingIn, read_limit, read_rate, read_retention, read_settings,
};
