//! Adding events up: what is counted, by what, in which spans of time. Nothing here touches a database.

pub use crate::analytics::Counts;
pub use crate::analytics::Grain;
pub use crate::analytics::Histogram;
pub use crate::analytics::Shape;
pub(crate) use crate::analytics::day_counts::{DayCounts, add_days, block_start};
pub(crate) use crate::analytics::tally::{CountedEvent, EventData, Facts, Hold, Tally};
pub use crate::analytics::{CountingRules, OTHER_PROVIDER};
pub use counts::Metric;
