//! The time series by dimension as CSV.

use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_app::analytics::{Dimension, METRICS, Timeseries};

use super::range::Range;
use super::show::shown;
use crate::answer::{Answer, download};
use crate::csv::cell;
use crate::visit::Visit;

pub(super) async fn download_csv(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::AnalyticsTimeseries).await?;
    let range = Range::parse(visit.query.text("range"));
    let dimension = Dimension::parse(visit.query.text("by")).unwrap_or(Dimension::Domain);
    let query = range.timeseries(visit.app().now(), Some(dimension), Vec::new());
    let series = visit.app().analytics_timeseries(&caller, &query).await?;
    let name = format!("analytics-{}-{}.csv", range.name, dimension.as_str());
    Ok(download("text/csv; charset=utf-8", &name, csv(&series, dimension)))
}

fn csv(series: &Timeseries, dimension: Dimension) -> String {
    let mut text = format!("at,{}", dimension.as_str());
    for metric in METRICS {
        text.push(',');
        text.push_str(metric.as_str());
    }
    text.push_str("\r\n");
    for one in &series.series {
        let value = if one.is_rest {
            "(the rest)".to_owned()
        } else {
            one.values.first().map(shown).unwrap_or_default()
        };
        for point in &one.points {
            text.push_str(&point.at.to_rfc3339());
            text.push(',');
            text.push_str(&cell(&value));
            for metric in METRICS {
                text.push(',');
                text.push_str(&point.figures.count(metric).to_string());
            }
            text.push_str("\r\n");
        }
    }
    text
}
