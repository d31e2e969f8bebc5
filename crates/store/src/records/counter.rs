//! What was added up, as it is read back.

use crate::counting::Sums;

/// The sums of one span of time.
#[derive(Debug, Clone)]
pub struct CounterRow {
    /// Number of the set of dimensions; 0 for the total.
    pub dimensions: i64,
    /// When the span begins, in seconds since 1970.
    pub at: i64,
    pub sums: Sums,
}

/// How much of a server's events one turn of counting took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountProgress {
    /// Nothing was left.
    AllDone,
    /// There may be more.
    Some,
    /// Another node was at it.
    Overtaken,
}
