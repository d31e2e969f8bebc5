//! The time series by one or two dimensions as CSV.

use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_app::analytics::{Dimension, METRICS, Metric, Timeseries, TopBy};

use super::analytics_query::AnalyticsQuery;
use super::show::shown;
use crate::answer::{Answer, download};
use crate::csv::cell;
use crate::problem::Problem;
use crate::visit::Visit;

pub(super) async fn download_csv(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::AnalyticsTimeseries).await?;
    let (query, problem) = AnalyticsQuery::read(&visit.query, visit.app().now());
    if let Some(problem) = problem {
        return Err(Problem::Invalid(problem));
    }
    // Recipient domains are too many for a series of each.
    let first = match query.by {
        TopBy::Dimension(dimension) => dimension,
        TopBy::RecipientDomain => Dimension::Domain,
    };
    let also = query.also.filter(|also| *also != first);
    let dimensions: Vec<Dimension> = [first].into_iter().chain(also).collect();
    let series = visit.app().analytics_timeseries(&caller, &query.timeseries(dimensions.clone())).await?;
    let names = dimensions.iter().map(|dimension| dimension.as_str()).collect::<Vec<_>>().join("-");
    let name = format!("analytics-{}-{names}.csv", query.range.name);
    Ok(download("text/csv; charset=utf-8", &name, csv(&series, &dimensions)))
}

fn csv(series: &Timeseries, dimensions: &[Dimension]) -> String {
    let mut text = "at".to_owned();
    let columns = dimensions.iter().map(|dimension| dimension.as_str());
    for column in columns.chain(METRICS.map(Metric::as_str)) {
        text.push(',');
        text.push_str(column);
    }
    text.push_str("\r\n");
    for one in &series.series {
        let value = |at: usize| {
            if one.is_rest {
                "(the rest)".to_owned()
            } else {
                one.values.get(at).map(shown).unwrap_or_default()
            }
        };
        let mut values = String::new();
        for at in 0..dimensions.len() {
            values.push(',');
            values.push_str(&cell(&value(at)));
        }
        for point in &one.points {
            text.push_str(&point.at.to_rfc3339());
            text.push_str(&values);
            for metric in METRICS {
                text.push(',');
                text.push_str(&point.figures.count(metric).to_string());
            }
            text.push_str("\r\n");
        }
    }
    text
}
