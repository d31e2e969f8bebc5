//! Errors in queries.

use std::fmt;

/// An error and its position: characters are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryProblem {
    pub(super) at: usize,
    pub(super) message: String,
}

impl fmt::Display for QueryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "has a mistake at character {}: {}", self.at, self.message)
    }
}
