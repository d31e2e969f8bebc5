//! Figures of the newest bars of the chart, as a table.

use postroad_app::analytics::{Granularity, Metric, Point, Timeseries, Zone};

use crate::display::{count, percent};

/// Maximum number of rows on the page; the CSV file has all spans.
const ROWS_MAX: usize = 40;

pub(super) struct TimeRow {
    /// Beginning of the span, in the zone of the query.
    pub(super) at: String,
    pub(super) accepted: String,
    pub(super) sent: String,
    pub(super) delayed: String,
    pub(super) failed: String,
    pub(super) held: String,
    pub(super) bounce: String,
    pub(super) complaint: String,
}

/// Spans with something to count, the newest first, at most `ROWS_MAX`.
pub(super) fn time_rows(series: &Timeseries, granularity: Granularity, zone: &Zone) -> Vec<TimeRow> {
    let points = series.series.first().map(|series| series.points.as_slice()).unwrap_or_default();
    let length = match granularity {
        Granularity::Minute | Granularity::Hour => "2026-01-31T09:00".len(),
        Granularity::Day => "2026-01-31".len(),
        Granularity::Month => "2026-01".len(),
    };
    let row = |point: &Point| {
        let (figures, rates) = (&point.figures, point.figures.rates());
        let of = |metric| figures.count(metric);
        let counts = [
            of(Metric::Accepted),
            of(Metric::Sent),
            of(Metric::SoftFail),
            of(Metric::HardFail) + of(Metric::Bounced),
            of(Metric::Held),
        ];
        if counts == [0; 5] {
            return None;
        }
        let local = zone.local(point.at);
        let [accepted, sent, delayed, failed, held] = counts.map(count);
        Some(TimeRow {
            at: local.get(..length).unwrap_or(&local).replace('T', " "),
            accepted,
            sent,
            delayed,
            failed,
            held,
            bounce: percent(rates.bounce),
            complaint: percent(rates.complaint),
        })
    };
    points.iter().rev().filter_map(row).take(ROWS_MAX).collect()
}
