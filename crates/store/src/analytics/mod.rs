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
mod reads;
pub(crate) mod recipient_providers;
mod sums;
pub(crate) mod tally;
mod uncounted;
mod value_limit;

pub use count_step::CountProgress;
pub use counts::{Counts, Metric};
pub use dimension_type::StoredValue;
pub use dimensions::{Breakdown, Dimension, Dimensions, LIMITED_VALUES_MAX, OTHER_VALUES};
pub use grain::Grain;
pub use histogram::Histogram;
pub use reads::CounterRow;
pub use sums::Sums;
pub use tally::{CountingRules, OTHER_PROVIDER};
