//! Messages over time as a chart, and the rates that receivers judge a sender by.

use postroad_app::Caller;
use postroad_app::analytics::{Granularity, Metric, Rates, Timeseries, TimeseriesQuery, Zone};
use postroad_model::Timestamp;

use super::range::Range;
use crate::chart::{Bar, Part, bars};
use crate::display::percent;
use crate::problem::Problem;
use crate::rate_chart::{RatePoint, rate_chart};
use crate::visit::Visit;

/// Rates from which receivers begin to distrust a sender.
pub(crate) const BOUNCE_RATE_MAX: f64 = 0.04;
pub(crate) const COMPLAINT_RATE_MAX: f64 = 0.0008;
/// With fewer accepted messages than this, tables do not mark a rate as high, and a high rate is not reported as a
/// problem.
pub(crate) const JUDGED_MESSAGES_MIN: u64 = 50;

pub(crate) const PARTS: [Part; 4] = [
    Part { class: "c1", name: "delivered" },
    Part { class: "c2", name: "delayed attempts" },
    Part { class: "c3", name: "failed or bounced" },
    Part { class: "c4", name: "held" },
];

/// Bounce rate and complaint rate of one day in the reader's time zone.
pub(crate) struct RatesOfDay {
    pub(crate) day: String,
    pub(crate) bounce: String,
    pub(crate) complaint: String,
    pub(crate) is_bounce_high: bool,
    pub(crate) is_complaint_high: bool,
}

/// Charts of the bounce rate and the complaint rate, each with a line at the rate to stay below.
pub(crate) struct RateCharts {
    pub(crate) bounce: String,
    pub(crate) complaint: String,
}

/// The last seven days.
pub(crate) struct Week {
    pub(crate) chart: String,
    pub(crate) rate_charts: RateCharts,
    /// Days with mail, newest first.
    pub(crate) rates: Vec<RatesOfDay>,
    /// Name of the days' time zone.
    pub(crate) zone: String,
}

pub(crate) async fn week(visit: &Visit, caller: &Caller) -> Result<Week, Problem> {
    let range = Range::parse("week");
    let zone = visit.zone.clone();
    let query =
        TimeseriesQuery { granularity: Granularity::Day, zone, ..range.timeseries(visit.app().now()) };
    let series = visit.app().analytics_timeseries(caller, &query).await?;
    let chart = chart(
        &series,
        query.granularity,
        &query.zone,
        &format!("Messages of the last seven days, which are days in {}", visit.zone.name()),
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
    let rates = rates.collect();
    Ok(Week {
        chart,
        rate_charts: rate_charts(&series, query.granularity, &query.zone),
        rates,
        zone: visit.zone.name().to_owned(),
    })
}

pub(super) fn chart(series: &Timeseries, granularity: Granularity, zone: &Zone, description: &str) -> String {
    let points = series.series.first().map(|series| series.points.as_slice()).unwrap_or_default();
    let chart_bars: Vec<Bar> = points
        .iter()
        .map(|point| {
            let of = |metric| point.figures.count(metric);
            Bar {
                label: label(point.at, granularity, zone),
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

pub(super) fn rate_charts(series: &Timeseries, granularity: Granularity, zone: &Zone) -> RateCharts {
    let points = series.series.first().map(|series| series.points.as_slice()).unwrap_or_default();
    let chart = |of: fn(Rates) -> Option<f64>, limit, description| {
        let points = points.iter().map(|point| RatePoint {
            label: label(point.at, granularity, zone),
            rate: of(point.figures.rates()),
        });
        rate_chart(&points.collect::<Vec<_>>(), limit, description)
    };
    RateCharts {
        bounce: chart(|rates| rates.bounce, BOUNCE_RATE_MAX, "Bounce rate over time, to be kept below 4 %"),
        complaint: chart(
            |rates| rates.complaint,
            COMPLAINT_RATE_MAX,
            "Complaint rate over time, to be kept below 0.08 %",
        ),
    }
}

/// Text below a bar or point.
fn label(at: Timestamp, granularity: Granularity, zone: &Zone) -> String {
    let local = zone.local(at);
    let part = match granularity {
        Granularity::Minute | Granularity::Hour => local.get(11..16),
        Granularity::Day => local.get(5..10),
        Granularity::Month => local.get(..7),
    };
    part.unwrap_or_default().to_owned()
}
