//! Messages over time as a chart.

use postroad_app::Caller;
use postroad_app::analytics::{Granularity, Metric, Timeseries, Zone};

use super::range::Range;
use crate::chart::{Bar, Part, bars};
use crate::problem::Problem;
use crate::visit::Visit;

pub(crate) const PARTS: [Part; 4] = [
    Part { class: "c1", name: "delivered" },
    Part { class: "c2", name: "delayed attempts" },
    Part { class: "c3", name: "failed or bounced" },
    Part { class: "c4", name: "held" },
];

/// The last seven days.
pub(crate) async fn week(visit: &Visit, caller: &Caller) -> Result<String, Problem> {
    let range = Range::parse("week");
    let query = range.timeseries(visit.app().now());
    let series = visit.app().analytics_timeseries(caller, &query).await?;
    Ok(chart(&series, query.granularity, &query.zone, "Messages of the last seven days"))
}

pub(super) fn chart(series: &Timeseries, granularity: Granularity, zone: &Zone, description: &str) -> String {
    let points = series.series.first().map(|series| series.points.as_slice()).unwrap_or_default();
    let chart_bars: Vec<Bar> = points
        .iter()
        .map(|point| {
            let local = zone.local(point.at);
            let label = match granularity {
                Granularity::Minute | Granularity::Hour => local.get(11..16),
                Granularity::Day => local.get(5..10),
                Granularity::Month => local.get(..7),
            };
            let of = |metric| point.figures.count(metric);
            Bar {
                label: label.unwrap_or_default().to_owned(),
                values: vec![
                    of(Metric::Sent),
                    of(Metric::SoftFail),
                    of(Metric::HardFail) + of(Metric::Bounced),
                    of(Metric::Held),
                ],
            }
        })
        .collect();
    bars(&PARTS, &chart_bars, description)
}
