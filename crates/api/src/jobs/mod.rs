//! jobs/*: the progress of work on many messages.

pub(crate) mod get;
