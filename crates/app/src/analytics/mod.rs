//! Statistics about a server's mail, read from the counters of `CounterTask`. Only the figures of a single message are
//! computed from its events.

mod by_server;
mod collect;
mod counter_task;
mod dimension;
mod figures;
mod message;
mod plan;
mod summary;
mod timeseries;
mod top;
mod zone;

pub use by_server::ServerFigures;
pub use counter_task::CounterTask;
pub use dimension::{DimensionValue, Filter};
pub use figures::{Figures, Latency, Percentiles, Rates};
pub use message::{LinkClicks, MessageMetrics};
pub use postroad_store::{Dimension, LIMITED_VALUES_MAX, Metric, OTHER_VALUES};
pub use summary::{Summary, SummaryQuery};
pub use timeseries::{DIMENSIONS_MAX, Point, Series, Timeseries, TimeseriesQuery};
pub use top::{Top, TopBy, TopEntry, TopQuery};
pub use zone::{Granularity, Zone};

use std::time::Duration;

use postroad_model::Timestamp;

use crate::App;
use crate::refusal::{FieldProblem, Refusal};

/// Metrics of the API, in the order of the response.
pub const METRICS: [Metric; 13] = [
    Metric::Accepted,
    Metric::Sent,
    Metric::SoftFail,
    Metric::HardFail,
    Metric::Bounced,
    Metric::Held,
    Metric::Complained,
    Metric::Suppressed,
    Metric::Opened,
    Metric::UniqueOpened,
    Metric::Clicked,
    Metric::UniqueClicked,
    Metric::Unsubscribed,
];

fn invalid_field(pointer: &str, message: impl Into<String>) -> Refusal {
    Refusal::Validation(vec![FieldProblem::new(pointer, message)])
}

/// Default range of calls, except of time series by the minute, hour or month.
const DEFAULT_RANGE: Duration = Duration::from_hours(30 * 24);

impl App {
    /// The requested time range, with defaults; refuses a range that ends before it begins.
    fn range(
        &self,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        default_length: Duration,
    ) -> Result<(Timestamp, Timestamp), Refusal> {
        let to = to.unwrap_or_else(|| self.inner.clock.now());
        let from = from.unwrap_or_else(|| to.minus(default_length));
        if from < to { Ok((from, to)) } else { Err(invalid_field("/to", "`to` has to be later than `from`")) }
    }
}
