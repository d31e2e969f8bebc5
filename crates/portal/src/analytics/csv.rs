//! CSV file of the time series by one or two dimensions. The file by recipient domain has the totals of the largest
//! domains instead of a time series.

use postroad_app::access::Operation;
use postroad_app::analytics::{
    Dimension, Figures, METRICS, Metric, Percentiles, Rates, Timeseries, Top, TopBy, TopQuery,
};

use super::analytics_query::{AnalyticsQuery, RECIPIENT_DOMAIN};
use super::show::value_text;
use crate::answer::{Answer, download};
use crate::csv::cell;
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

/// Maximum number of recipient domains in a file: the largest ones by the chosen metric.
const DOMAINS_MAX: usize = 1_000;
/// Columns after the counts. Times are from acceptance to delivery.
const RATES_AND_TIMES: [&str; 9] = [
    "delivery_rate",
    "bounce_rate",
    "complaint_rate",
    "open_rate",
    "click_rate",
    "unsubscribe_rate",
    "seconds_p50",
    "seconds_p90",
    "seconds_p99",
];

pub(super) async fn download_csv(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::AnalyticsTimeseries).await?;
    let (query, problem) = AnalyticsQuery::read(&visit.query, visit.app().now(), &visit.zone);
    if let Some(problem) = problem {
        return Err(Problem::Invalid(problem));
    }
    let first = match query.by {
        TopBy::Dimension(dimension) => dimension,
        // There are too many recipient domains for a time series of each.
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

/// The CSV file by recipient domain, with all figures.
fn top_csv(top: &Top) -> String {
    let mut text = RECIPIENT_DOMAIN.to_owned();
    push_names(&mut text);
    for entry in &top.entries {
        text.push_str(&cell(&value_text(&entry.value)));
        push_figures(&mut text, &entry.figures);
    }
    text
}

fn csv(series: &Timeseries, dimensions: &[Dimension]) -> String {
    let mut text = "at".to_owned();
    for dimension in dimensions {
        text.push(',');
        text.push_str(dimension.as_str());
    }
    push_names(&mut text);
    for one in &series.series {
        let value = |at: usize| {
            if one.is_rest {
                "(the rest)".to_owned()
            } else {
                one.values.get(at).map(value_text).unwrap_or_default()
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
            push_figures(&mut text, &point.figures);
        }
    }
    text
}

/// Appends the names of the columns that `push_figures` fills, and ends the line.
fn push_names(text: &mut String) {
    for name in METRICS.map(Metric::as_str).into_iter().chain(RATES_AND_TIMES) {
        text.push(',');
        text.push_str(name);
    }
    text.push_str("\r\n");
}

/// Appends counts, rates as fractions and times in seconds, and ends the line. A figure that does not exist is left
/// empty.
fn push_figures(text: &mut String, figures: &Figures) {
    for metric in METRICS {
        text.push(',');
        text.push_str(&figures.count(metric).to_string());
    }
    let Rates { delivery, bounce, complaint, open, click, unsubscribe } = figures.rates();
    let Percentiles { p50, p90, p99 } = figures.latency.sent;
    for figure in [delivery, bounce, complaint, open, click, unsubscribe, p50, p90, p99] {
        text.push(',');
        text.extend(figure.map(|figure| format!("{figure:.6}")));
    }
    text.push_str("\r\n");
}
