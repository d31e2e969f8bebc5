//! Messages over time as a chart.

use postroad_app::Caller;
use postroad_app::analytics::{Metric, Timeseries};

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
    let query = range.timeseries(visit.app().now(), None, Vec::new());
    let series = visit.app().analytics_timeseries(caller, &query).await?;
    Ok(chart(&series, range, "Messages of the last seven days"))
}

pub(super) fn chart(series: &Timeseries, range: Range, description: &str) -> String {
    let points = series.series.first().map(|series| series.points.as_slice()).unwrap_or_default();
    let chart_bars: Vec<Bar> = points
        .iter()
        .map(|point| {
            let iso = point.at.to_rfc3339_millis();
            let label = if range.is_hourly() { iso.get(11..16) } else { iso.get(5..10) };
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
