//! server/*: the settings of the key's own server.

pub(crate) mod get;
mod server_out;
pub(crate) mod update;

pub(crate) use server_out::{RetentionCeilingsOut, ServerOut};
#[cfg(test)]
pub(crate) use update::{LimitIn, RetentionIn, TrackingIn};
pub(crate) use update::{
    read_number_or_none, read_rate, read_retention, read_settings, read_settings_with_ceilings,
};
