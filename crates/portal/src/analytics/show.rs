//! The analytics page: figures compared with the previous period, charts, and a table by dimension.

use std::collections::HashMap;

use askama::Template;
use postroad_app::Caller;
use postroad_app::access::Operation;
use postroad_app::analytics::{
    Dimension, DimensionValue, Figures, METRICS, Metric, Summary, TopBy, TopEntry,
};
use postroad_model::ServerId;
use postroad_store::CredentialFilter;

use super::analytics_query::{AnalyticsQuery, NONE, RECIPIENT_DOMAIN};
use super::chart::{PARTS, RateCharts, chart, rate_charts};
use super::difference;
use super::range::RANGES;
use super::time_rows::{TimeRow, time_rows};
use crate::answer::{Answer, page};
use crate::chart::Part;
use crate::display::{count, percent};
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

/// Maximum number of bars that a chart can show.
const BARS_MAX: usize = 400;
/// Maximum number of keys whose names are read.
const KEYS_MAX: usize = 500;

struct Figure {
    label: &'static str,
    value: String,
    before: String,
    /// Difference to `before`, the value of the previous period; `None` if there is nothing to compare with.
    change: Option<String>,
}

struct Choice {
    value: &'static str,
    label: &'static str,
    is_chosen: bool,
}

struct FilterField {
    name: &'static str,
    label: &'static str,
    value: String,
}

/// A filter that is set.
struct Chip {
    label: String,
    /// Link to the page without this filter.
    without: String,
}

struct KeyChoice {
    id: String,
    name: String,
    is_chosen: bool,
}

struct TopRow {
    value: String,
    /// Link to the page with this value as a filter.
    link: Option<String>,
    accepted: String,
    sent: String,
    failed: String,
    delivery: String,
    bounce: String,
    complaint: String,
    open: String,
    click: String,
}

/// The answer to the query.
struct AnalyticsAnswer {
    figures: Vec<Figure>,
    chart: String,
    rate_charts: RateCharts,
    times: Vec<TimeRow>,
    rows: Vec<TopRow>,
    /// Local times in the zone of the query.
    from: String,
    to: String,
    /// Whether all events up to now are counted.
    is_current: bool,
}

#[derive(Template)]
#[template(path = "analytics/show.html")]
struct AnalyticsPage {
    layout: Layout,
    query: AnalyticsQuery,
    ranges: Vec<Choice>,
    dimensions: Vec<Choice>,
    also: Vec<Choice>,
    metrics: Vec<Choice>,
    granularities: Vec<Choice>,
    fields: Vec<FilterField>,
    keys: Vec<KeyChoice>,
    chips: Vec<Chip>,
    shown: Option<AnalyticsAnswer>,
    parts: &'static [Part],
    by: &'static str,
    csv: String,
    problem: Option<String>,
}

/// Names of the server's keys by their ids.
struct KeyNames(HashMap<i64, String>);

impl KeyNames {
    async fn read(visit: &Visit, server: i64) -> Result<Self, Problem> {
        let filter = CredentialFilter { server_id: Some(ServerId(server)), ..CredentialFilter::default() };
        let (keys, _) = visit.app().list_credentials_as(&visit.requester, filter, None, KEYS_MAX).await?;
        Ok(Self(keys.into_iter().map(|key| (key.id.0, key.name)).collect()))
    }

    fn of(&self, id: i64) -> String {
        self.0.get(&id).map_or_else(|| format!("key {id}"), |name| format!("{name} ({id})"))
    }
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::AnalyticsTimeseries).await?;
    let (_, layout) = visit.server_layout(server, "Analytics", Section::Analytics).await?;
    let (query, mut problem) = AnalyticsQuery::read(&visit.query, visit.app().now(), &visit.zone);
    let names = KeyNames::read(&visit, server).await?;
    let mut shown = None;
    if problem.is_none() {
        match answer(&visit, &caller, &query, &names).await {
            Ok(answer) => shown = Some(answer),
            Err(refused) => problem = Some(refused.into_form_text()?),
        }
    }
    let mut dimensions: Vec<Choice> =
        Dimension::ALL.map(|one| dimension_choice(one, query.by == TopBy::Dimension(one))).into();
    dimensions.push(Choice {
        value: RECIPIENT_DOMAIN,
        label: "Recipient domain",
        is_chosen: query.by == TopBy::RecipientDomain,
    });
    page(&AnalyticsPage {
        layout,
        ranges: RANGES
            .map(|one| Choice { value: one.name, label: one.label, is_chosen: one == query.range })
            .into(),
        dimensions,
        also: Dimension::ALL.map(|one| dimension_choice(one, query.also == Some(one))).into(),
        metrics: METRICS
            .map(|one| Choice {
                value: one.as_str(),
                label: metric_label(one),
                is_chosen: query.metric == Some(one),
            })
            .into(),
        granularities: ["minute", "hour", "day", "month"]
            .map(|one| Choice { value: one, label: one, is_chosen: query.granularity_name == one })
            .into(),
        fields: fields(&query),
        keys: keys(&query, &names),
        chips: query.filters.iter().map(|filter| chip(&query, &names, filter)).collect(),
        shown,
        parts: &PARTS,
        by: match query.by {
            TopBy::Dimension(dimension) => dimension.label(),
            TopBy::RecipientDomain => "Recipient domain",
        },
        csv: format!("/servers/{server}/analytics/csv{}", query.query()),
        query,
        problem,
    })
}

async fn answer(
    visit: &Visit,
    caller: &Caller,
    query: &AnalyticsQuery,
    names: &KeyNames,
) -> Result<AnalyticsAnswer, Problem> {
    let app = visit.app();
    let current = app.analytics_summary(caller, &query.summary()).await?;
    let before = app.analytics_summary(caller, &query.previous_period().summary()).await?;
    let series = app.analytics_timeseries(caller, &query.timeseries(Vec::new())).await?;
    if series.series.first().is_some_and(|series| series.points.len() > BARS_MAX) {
        let text = "The chart would have more than 400 bars: choose a shorter range, or longer spans.";
        return Err(Problem::Invalid(text.to_owned()));
    }
    let top = app.analytics_top(caller, &query.top()).await?;
    let description = "Messages over time; the table below it has the figures";
    Ok(AnalyticsAnswer {
        figures: figures(&current, &before),
        chart: chart(&series, query.granularity, &query.zone, description),
        rate_charts: rate_charts(&series, query.granularity, &query.zone),
        times: time_rows(&series, query.granularity, &query.zone),
        rows: top.entries.iter().map(|entry| top_row(query, names, entry)).collect(),
        from: query.zone.local(series.from).replace('T', " "),
        to: query.zone.local(series.to).replace('T', " "),
        is_current: current.is_current,
    })
}

fn dimension_choice(dimension: Dimension, is_chosen: bool) -> Choice {
    Choice { value: dimension.as_str(), label: dimension.label(), is_chosen }
}

/// Text fields of filters; the filter for keys is a list instead.
fn fields(query: &AnalyticsQuery) -> Vec<FilterField> {
    let text = |dimension: Dimension| {
        let filter = query.filters.iter().find(|(known, _)| *known == dimension);
        filter.map(|(_, text)| text.clone()).unwrap_or_default()
    };
    let field = |dimension: Dimension| FilterField {
        name: dimension.as_str(),
        label: dimension.label(),
        value: text(dimension),
    };
    Dimension::ALL.into_iter().filter(|one| *one != Dimension::Credential).map(field).collect()
}

fn keys(query: &AnalyticsQuery, names: &KeyNames) -> Vec<KeyChoice> {
    let chosen = query.filters.iter().find(|(dimension, _)| *dimension == Dimension::Credential);
    let chosen = chosen.map_or("", |(_, text)| text);
    let mut keys: Vec<KeyChoice> = names
        .0
        .iter()
        .map(|(id, name)| KeyChoice {
            id: id.to_string(),
            name: name.clone(),
            is_chosen: id.to_string() == chosen,
        })
        .collect();
    keys.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    if !chosen.is_empty() && !keys.iter().any(|key| key.is_chosen) {
        keys.push(KeyChoice { id: chosen.to_owned(), name: chosen.to_owned(), is_chosen: true });
    }
    keys
}

fn chip(query: &AnalyticsQuery, names: &KeyNames, (dimension, text): &(Dimension, String)) -> Chip {
    let value = match (dimension, text.parse()) {
        (Dimension::Credential, Ok(id)) => names.of(id),
        _ => text.clone(),
    };
    let label = format!("{}: {value}", dimension.label());
    Chip { label, without: query.query_with(*dimension, "") }
}

fn figures(current: &Summary, before: &Summary) -> Vec<Figure> {
    let (now, then) = (&current.figures, &before.figures);
    let counted = |label, metric| {
        let (now, then) = (now.count(metric), then.count(metric));
        Figure {
            label,
            value: count(now),
            before: count(then),
            change: difference::relative(Some(now as f64), Some(then as f64)),
        }
    };
    let rate = |label, of: fn(&Figures) -> Option<f64>| Figure {
        label,
        value: percent(of(now)),
        before: percent(of(then)),
        change: difference::points(of(now), of(then)),
    };
    let seconds = |label, of: fn(&Figures) -> Option<f64>| Figure {
        label,
        value: duration_text(of(now)),
        before: duration_text(of(then)),
        change: difference::relative(of(now), of(then)),
    };
    vec![
        counted("Accepted", Metric::Accepted),
        counted("Delivered", Metric::Sent),
        rate("Delivery rate", |figures| figures.rates().delivery),
        rate("Bounce rate (keep below 4\u{a0}%)", |figures| figures.rates().bounce),
        rate("Complaint rate (keep below 0.08\u{a0}%)", |figures| figures.rates().complaint),
        rate("Open rate", |figures| figures.rates().open),
        rate("Click rate", |figures| figures.rates().click),
        seconds("Time to deliver, median", |figures| figures.latency.sent.p50),
        seconds("Time to deliver, 90 %", |figures| figures.latency.sent.p90),
        seconds("Time to deliver, 99 %", |figures| figures.latency.sent.p99),
    ]
}

fn top_row(query: &AnalyticsQuery, names: &KeyNames, entry: &TopEntry) -> TopRow {
    let (figures, rates) = (&entry.figures, entry.figures.rates());
    let text = value_text(&entry.value);
    let name = match &entry.value {
        DimensionValue::Number(id) => names.of(*id),
        _ => text.clone(),
    };
    TopRow {
        link: match query.by {
            TopBy::Dimension(dimension) => Some(query.query_with(dimension, &text)),
            TopBy::RecipientDomain => None,
        },
        value: name,
        accepted: count(figures.count(Metric::Accepted)),
        sent: count(figures.count(Metric::Sent)),
        failed: count(figures.count(Metric::HardFail) + figures.count(Metric::Bounced)),
        delivery: percent(rates.delivery),
        bounce: percent(rates.bounce),
        complaint: percent(rates.complaint),
        open: percent(rates.open),
        click: percent(rates.click),
    }
}

pub(super) fn value_text(value: &DimensionValue) -> String {
    match value {
        DimensionValue::None => NONE.to_owned(),
        DimensionValue::Text(text) => text.clone(),
        DimensionValue::Number(number) => number.to_string(),
    }
}

fn duration_text(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "–".to_owned(), |seconds| crate::display::duration((seconds * 1e6) as i64))
}

fn metric_label(metric: Metric) -> &'static str {
    match metric {
        Metric::Accepted => "Accepted",
        Metric::Sent => "Delivered",
        Metric::SoftFail => "Delayed attempts",
        Metric::HardFail => "Failed",
        Metric::Bounced => "Bounced",
        Metric::Held => "Held",
        Metric::Complained => "Complaints",
        Metric::Suppressed => "Suppressed",
        Metric::Opened => "Opens",
        Metric::UniqueOpened => "Opened messages",
        Metric::Clicked => "Clicks",
        Metric::UniqueClicked => "Clicked messages",
        Metric::Unsubscribed => "Unsubscriptions",
        other => other.as_str(),
    }
}
