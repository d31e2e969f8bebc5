//! The page: figures compared with the previous period, the chart, and a table by dimension.

use askama::Template;
use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_app::analytics::{
    Dimension, DimensionValue, Figures, Metric, Summary, SummaryQuery, TopBy, TopQuery,
};

use super::chart::{PARTS, chart};
use super::range::{RANGES, Range};
use crate::answer::{Answer, page};
use crate::chart::Part;
use crate::layout::{Layout, Section};
use crate::query::query;
use crate::shown::{count, percent};
use crate::visit::Visit;

const TOP_ROWS: usize = 25;

struct Figure {
    label: &'static str,
    value: String,
    before: String,
}

struct Choice {
    value: &'static str,
    words: &'static str,
    is_chosen: bool,
}

struct TopRow {
    value: String,
    accepted: String,
    sent: String,
    failed: String,
    delivery: String,
    bounce: String,
}

#[derive(Template)]
#[template(path = "analytics/show.html")]
struct AnalyticsPage {
    layout: Layout,
    ranges: Vec<Choice>,
    dimensions: Vec<Choice>,
    figures: Vec<Figure>,
    chart: String,
    parts: &'static [Part],
    by: &'static str,
    rows: Vec<TopRow>,
    csv: String,
    is_current: bool,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::AnalyticsTimeseries).await?;
    let (_, layout) = visit.server_layout(server, "Analytics", Section::Analytics).await?;
    let range = Range::parse(visit.query.text("range"));
    let dimension = Dimension::parse(visit.query.text("by")).unwrap_or(Dimension::Domain);
    let app = visit.app();
    let now = app.now();
    let summary = |to| SummaryQuery {
        from: Some(postroad_model::Timestamp::minus(to, range.length())),
        to: Some(to),
        filters: Vec::new(),
        include_bots: false,
    };
    let this = app.analytics_summary(&caller, &summary(now)).await?;
    let before = app.analytics_summary(&caller, &summary(now.minus(range.length()))).await?;
    let series = app.analytics_timeseries(&caller, &range.timeseries(now, None, Vec::new())).await?;
    let top = TopQuery {
        from: Some(now.minus(range.length())),
        to: Some(now),
        by: TopBy::Dimension(dimension),
        metric: if dimension == Dimension::BounceClass { Metric::SoftFail } else { Metric::Accepted },
        filters: Vec::new(),
        include_bots: false,
        limit: TOP_ROWS,
    };
    let top = app.analytics_top(&caller, &top).await?;
    page(&AnalyticsPage {
        layout,
        ranges: RANGES
            .map(|one| Choice { value: one.name, words: one.words, is_chosen: one == range })
            .into(),
        dimensions: Dimension::ALL
            .map(|one| Choice { value: one.as_str(), words: words(one), is_chosen: one == dimension })
            .into(),
        figures: figures(&this, &before),
        chart: chart(&series, range, "Messages over time; the table below has the figures"),
        parts: &PARTS,
        by: words(dimension),
        rows: top.entries.iter().map(|entry| top_row(&entry.value, &entry.figures)).collect(),
        csv: format!(
            "/servers/{server}/analytics/csv{}",
            query(&[("range", range.name), ("by", dimension.as_str())])
        ),
        is_current: this.is_current,
    })
}

fn figures(this: &Summary, before: &Summary) -> Vec<Figure> {
    let (now, then) = (&this.figures, &before.figures);
    let counted =
        |label, metric| Figure { label, value: count(now.count(metric)), before: count(then.count(metric)) };
    let rate = |label, of: fn(&Figures) -> Option<f64>| Figure {
        label,
        value: percent(of(now)),
        before: percent(of(then)),
    };
    let seconds = |label, of: fn(&Figures) -> Option<f64>| Figure {
        label,
        value: took(of(now)),
        before: took(of(then)),
    };
    vec![
        counted("Accepted", Metric::Accepted),
        counted("Delivered", Metric::Sent),
        rate("Delivery rate", |figures| figures.rates().delivery),
        rate("Bounce rate (keep below 4 %)", |figures| figures.rates().bounce),
        rate("Complaint rate (keep below 0.08 %)", |figures| figures.rates().complaint),
        rate("Open rate", |figures| figures.rates().open),
        rate("Click rate", |figures| figures.rates().click),
        seconds("Time to deliver, median", |figures| figures.latency.sent.p50),
        seconds("Time to deliver, 99 %", |figures| figures.latency.sent.p99),
    ]
}

fn top_row(value: &DimensionValue, figures: &Figures) -> TopRow {
    let rates = figures.rates();
    TopRow {
        value: shown(value),
        accepted: count(figures.count(Metric::Accepted)),
        sent: count(figures.count(Metric::Sent)),
        failed: count(figures.count(Metric::HardFail) + figures.count(Metric::Bounced)),
        delivery: percent(rates.delivery),
        bounce: percent(rates.bounce),
    }
}

pub(super) fn shown(value: &DimensionValue) -> String {
    match value {
        DimensionValue::None => "(none)".to_owned(),
        DimensionValue::Text(text) => text.clone(),
        DimensionValue::Number(number) => number.to_string(),
    }
}

fn took(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "–".to_owned(), |seconds| crate::shown::duration((seconds * 1e6) as i64))
}

fn words(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Domain => "Sender domain",
        Dimension::Tag => "Tag",
        Dimension::RecipientProvider => "Provider",
        Dimension::Template => "Template",
        Dimension::IpPool => "IP pool",
        Dimension::Credential => "Key",
        Dimension::BounceClass => "Bounce class",
        Dimension::SourceIp => "Sending address",
        Dimension::TlsVersion => "TLS version",
    }
}
