//! Key of a counter.

/// Primary key of `counters` without the server: grain, breakdown (column `shape`), start of the time span (column
/// `at`), and number of the dimension set (column `dimensions`).
pub(crate) type CounterKey = (i64, i64, i64, i64);
