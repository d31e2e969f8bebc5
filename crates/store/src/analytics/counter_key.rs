//! Key of a counter.

/// Primary key of `counters` without its server: grain, breakdown (the column `shape`), start of its span, number of
/// its set of dimensions.
pub(crate) type CounterKey = (i64, i64, i64, i64);
