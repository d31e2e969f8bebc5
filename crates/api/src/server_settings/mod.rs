//! server/*: the settings of the key's own server.

pub(crate) mod get;
mod server_out;
pub(crate) mod update;
