//! Analytics: adds events to counters by time span and dimensions, and reads them.

mod attempts;
mod count_step;
mod counter_key;
mod counter_sets;
mod counters;
mod counters_postgres;
mod counts;
pub(crate) mod day_counts;
mod dimension;
mod dimension_type;
mod dimensions;
mod grain;
mod histogram;
mod label_limit;
mod reads;
pub(crate) mod recipient_providers;
mod sums;
pub(crate) mod tally;
mod uncounted;

pub use count_step::CountProgress;
pub use counts::{Counts, Metric};
pub use dimension_type::StoredValue;
pub use dimensions::{Breakdown, Dimension, Dimensions, LABELS_MAX, OTHER_LABELS};
pub use grain::Grain;
pub use histogram::Histogram;
pub use reads::CounterRow;
pub use sums::Sums;
pub use tally::{CountingRules, OTHER_PROVIDER};
