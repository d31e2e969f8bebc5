//! Event feed that clients pull.

pub(crate) mod list;
