//! The time series by one or two dimensions as CSV; by recipient domain, the largest of them without a series.

use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_app::analytics::{Dimension, METRICS, Metric, Timeseries, Top, TopBy, TopQuery};

use super::analytics_query::{AnalyticsQuery, RECIPIENT_DOMAIN};
use super::show::shown;
use crate::answer::{Answer, download};
use crate::csv::cell;
use crate::problem::Problem;
use crate::visit::Visit;

/// Recipient domains of a file, largest first.
const DOMAINS_MAX: usize = 1_000;

pub(super) async fn download_csv(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::AnalyticsTimeseries).await?;
    let (query, problem) = AnalyticsQuery::read(&visit.query, visit.app().now());
    if let Some(problem) = problem {
        return Err(Problem::Invalid(problem));
    }
    let first = match query.by {
        TopBy::Dimension(dimension) => dimension,
        // They are too many for a series of each.
        TopBy::RecipientDomain => {
            let caller = visit.caller(server, Operation::AnalyticsTop).await?;
            let wanted = TopQuery { limit: DOMAINS_MAX, ..query.top() };
            let top = visit.app().analytics_top(&caller, &wanted).await?;
            let name = format!("analytics-{}-{RECIPIENT_DOMAIN}.csv", query.range.name);
            return Ok(download("text/csv; charset=utf-8", &name, top_csv(&top)));
        }
    };
    let also = query.also.filter(|also| *also != first);
    let dimensions: Vec<Dimension> = [first].into_iter().chain(also).collect();
    let series = visit.app().analytics_timeseries(&caller, &query.timeseries(dimensions.clone())).await?;
    let names = dimensions.iter().map(|dimension| dimension.as_str()).collect::<Vec<_>>().join("-");
    let name = format!("analytics-{}-{names}.csv", query.range.name);
    Ok(download("text/csv; charset=utf-8", &name, csv(&series, &dimensions)))
}

/// The table by recipient domain, with all figures.
fn top_csv(top: &Top) -> String {
    let mut text = RECIPIENT_DOMAIN.to_owned();
    for metric in METRICS {
        text.push(',');
        text.push_str(metric.as_str());
    }
    text.push_str("\r\n");
    for entry in &top.entries {
        text.push_str(&cell(&shown(&entry.value)));
        for metric in METRICS {
            text.push(',');
            text.push_str(&entry.figures.count(metric).to_string());
        }
        text.push_str("\r\n");
    }
    text
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
