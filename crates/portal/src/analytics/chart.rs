//! Messages over time as a chart.

use postroad_app::Caller;
use postroad_app::analytics::{Granularity, Metric, Timeseries, TimeseriesQuery, Zone};

use super::range::Range;
use crate::chart::{Bar, Part, bars};
use crate::problem::Problem;
use crate::shown::percent;
use crate::visit::Visit;

/// Rates from which receivers begin to distrust a sender.
pub(crate) const BOUNCE_RATE_MAX: f64 = 0.04;
pub(crate) const COMPLAINT_RATE_MAX: f64 = 0.0008;
/// For fewer messages a rate is meaningless.
pub(crate) const JUDGED_MESSAGES_MIN: u64 = 50;

pub(crate) const PARTS: [Part; 4] = [
    Part { class: "c1", name: "delivered" },
    Part { class: "c2", name: "delayed attempts" },
    Part { class: "c3", name: "failed or bounced" },
    Part { class: "c4", name: "held" },
];

/// Bounces and complaints of one day in UTC.
pub(crate) struct RatesOfDay {
    pub(crate) day: String,
    pub(crate) bounce: String,
    pub(crate) complaint: String,
    pub(crate) is_bounce_high: bool,
    pub(crate) is_complaint_high: bool,
}

/// The last seven days as a chart, and the rates of days with mail, newest first.
pub(crate) async fn week(visit: &Visit, caller: &Caller) -> Result<(String, Vec<RatesOfDay>), Problem> {
    let range = Range::parse("week");
    let query = TimeseriesQuery { granularity: Granularity::Day, ..range.timeseries(visit.app().now()) };
    let series = visit.app().analytics_timeseries(caller, &query).await?;
    let chart = chart(
        &series,
        query.granularity,
        &query.zone,
        "Messages of the last seven days, which are days in UTC",
    );
    let points = series.series.first().map(|series| series.points.as_slice()).unwrap_or_default();
    let with_mail = points.iter().rev().filter(|point| point.figures.count(Metric::Accepted) > 0);
    let rates = with_mail.map(|point| {
        let rates = point.figures.rates();
        let is_judged = point.figures.count(Metric::Accepted) >= JUDGED_MESSAGES_MIN;
        let is_high = |rate: Option<f64>, max: f64| is_judged && rate.is_some_and(|rate| rate > max);
        RatesOfDay {
            day: query.zone.local(point.at).get(..10).unwrap_or_default().to_owned(),
            bounce: percent(rates.bounce),
            complaint: percent(rates.complaint),
            is_bounce_high: is_high(rates.bounce, BOUNCE_RATE_MAX),
            is_complaint_high: is_high(rates.complaint, COMPLAINT_RATE_MAX),
        }
    });
    Ok((chart, rates.collect()))
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
