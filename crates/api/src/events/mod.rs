//! The stream of events, pulled.

pub(crate) mod list;
