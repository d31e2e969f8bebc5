//! events/*: the event feed, which clients poll.

pub(crate) mod list;
