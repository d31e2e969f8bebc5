//! Time ranges that can be chosen.

use std::time::Duration;

use postroad_app::analytics::{Dimension, Filter, Granularity, TimeseriesQuery, Zone};
use postroad_model::Timestamp;

const DAY: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) name: &'static str,
    pub(super) words: &'static str,
    days: u32,
    granularity: Granularity,
}

pub(super) const RANGES: [Range; 4] = [
    Range { name: "day", words: "24 hours", days: 1, granularity: Granularity::Hour },
    Range { name: "week", words: "7 days", days: 7, granularity: Granularity::Day },
    Range { name: "month", words: "30 days", days: 30, granularity: Granularity::Day },
    Range { name: "quarter", words: "90 days", days: 90, granularity: Granularity::Day },
];

impl Range {
    /// A week unless another is named.
    pub(super) fn parse(name: &str) -> Self {
        RANGES.into_iter().find(|range| range.name == name).unwrap_or(RANGES[1])
    }

    pub(super) fn length(self) -> Duration {
        DAY * self.days
    }

    pub(super) fn is_hourly(self) -> bool {
        self.granularity == Granularity::Hour
    }

    pub(super) fn timeseries(
        self,
        now: Timestamp,
        dimension: Option<Dimension>,
        filters: Vec<Filter>,
    ) -> TimeseriesQuery {
        TimeseriesQuery {
            from: Some(now.minus(self.length())),
            to: Some(now),
            granularity: self.granularity,
            zone: Zone::utc(),
            dimensions: dimension.into_iter().collect(),
            filters,
            include_bots: false,
        }
    }
}
