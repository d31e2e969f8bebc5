//! Time ranges to choose from, such as `week`; each ends now unless a last day is chosen.

use std::time::Duration;

use postroad_app::analytics::{Granularity, TimeseriesQuery, Zone};
use postroad_model::Timestamp;

const DAY: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    days: u32,
}

pub(super) const RANGES: [Range; 4] = [
    Range { name: "day", label: "24 hours", days: 1 },
    Range { name: "week", label: "7 days", days: 7 },
    Range { name: "month", label: "30 days", days: 30 },
    Range { name: "quarter", label: "90 days", days: 90 },
];

impl Range {
    /// The range of this name; a week if there is none.
    pub(super) fn parse(name: &str) -> Self {
        RANGES.into_iter().find(|range| range.name == name).unwrap_or(RANGES[1])
    }

    pub(super) fn length(self) -> Duration {
        DAY * self.days
    }

    /// Query of this range up to `now`, in UTC, without dimensions and filters.
    pub(super) fn timeseries(self, now: Timestamp) -> TimeseriesQuery {
        TimeseriesQuery {
            from: Some(now.minus(self.length())),
            to: Some(now),
            granularity: granularity_for(self.length()),
            zone: Zone::utc(),
            dimensions: Vec::new(),
            filters: Vec::new(),
            include_bots: false,
        }
    }
}

/// Default granularity of a chart of this length.
pub(super) fn granularity_for(length: Duration) -> Granularity {
    match length {
        length if length <= DAY * 2 => Granularity::Hour,
        length if length <= DAY * 120 => Granularity::Day,
        _ => Granularity::Month,
    }
}
