//! Key of a counter.

/// Primary key of `counters` without its server: grain, breakdown, start of its span, set of dimensions.
pub(crate) type CounterKey = (i64, i64, i64, i64);
