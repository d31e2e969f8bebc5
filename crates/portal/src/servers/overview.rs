//! Overview of a server: the steps of its set-up, the last day in figures, and the newest messages.

use std::time::Duration;

use askama::Template;
use axum::extract::Path;
use postroad_app::SearchRequest;
use postroad_app::access::Operation;
use postroad_app::analytics::{Metric, SummaryQuery};
use postroad_store::CredentialFilter;

use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::problem::Problem;
use crate::shown::{StatusBadge, When, count};
use crate::visit::Visit;

const NEWEST_ROWS: usize = 8;
const DAY: Duration = Duration::from_hours(24);

struct Step {
    is_done: bool,
    text: &'static str,
    path: String,
}

struct Figure {
    label: &'static str,
    value: String,
    note: String,
}

struct Row {
    id: i64,
    status: StatusBadge,
    to: String,
    subject: String,
    at: When,
}

#[derive(Template)]
#[template(path = "servers/overview.html")]
struct OverviewPage {
    layout: Layout,
    server: i64,
    name: String,
    suspended: Option<String>,
    is_development: bool,
    steps: Vec<Step>,
    figures: Vec<Figure>,
    rows: Vec<Row>,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let (record, layout) = visit.server_layout(server, "Overview", Section::Overview).await?;
    let caller = visit.caller(server, Operation::MessagesSearch).await?;
    let filter =
        SearchRequest::default().filter().map_err(|_| Problem::Internal("an empty search".to_owned()))?;
    let newest = visit.app().search_messages(caller.server_id, filter, None, NEWEST_ROWS).await?;
    let rows: Vec<Row> = newest
        .items
        .into_iter()
        .map(|item| Row {
            id: item.id.0,
            status: StatusBadge(item.status),
            to: item.rcpt_to,
            subject: item.subject,
            at: When(item.created_at),
        })
        .collect();
    let steps = steps(&visit, server, !rows.is_empty()).await?;
    page(&OverviewPage {
        layout,
        server,
        name: record.name,
        suspended: record.suspended_reason,
        is_development: record.mode == postroad_model::ServerMode::Development,
        figures: if rows.is_empty() { Vec::new() } else { figures(&visit, server).await? },
        steps,
        rows,
    })
}

/// The set-up order; none is left when all are done.
async fn steps(visit: &Visit, server: i64, has_messages: bool) -> Result<Vec<Step>, Problem> {
    let app = visit.app();
    let filter = CredentialFilter {
        server_id: Some(postroad_model::ServerId(server)),
        revoked: Some(false),
        ..CredentialFilter::default()
    };
    let (keys, _) = app.list_credentials_of(&visit.by, filter, None, 1).await?;
    let caller = visit.caller(server, Operation::DomainsList).await?;
    let (domains, _) = app.list_domains(&caller, None, 50).await?;
    let (webhooks, _) = app.list_webhooks(&caller, None, 1).await?;
    let step =
        |is_done, text, folder: &str| Step { is_done, text, path: format!("/servers/{server}{folder}") };
    let steps = vec![
        step(!keys.is_empty(), "Create an API key", "/keys"),
        step(
            domains.iter().any(|view| view.domain.verified_by.is_some()),
            "Verify a sending domain",
            "/domains",
        ),
        step(has_messages, "Send a first message", "/first_message"),
        step(!webhooks.is_empty(), "Set up a webhook", "/webhooks"),
    ];
    Ok(if steps.iter().all(|step| step.is_done) { Vec::new() } else { steps })
}

async fn figures(visit: &Visit, server: i64) -> Result<Vec<Figure>, Problem> {
    let caller = visit.caller(server, Operation::AnalyticsSummary).await?;
    let to = visit.app().now();
    let query =
        SummaryQuery { from: Some(to.minus(DAY)), to: Some(to), filters: Vec::new(), include_bots: false };
    let summary = visit.app().analytics_summary(&caller, &query).await?;
    let figures = &summary.figures;
    let rates = figures.rates();
    let percent = |rate: Option<f64>| rate.map_or_else(String::new, |rate| format!("{:.2} %", rate * 100.0));
    let figure = |label, metric, note| Figure { label, value: count(figures.count(metric)), note };
    Ok(vec![
        figure("Accepted", Metric::Accepted, String::new()),
        figure("Delivered", Metric::Sent, percent(rates.delivery)),
        figure("Bounced", Metric::Bounced, percent(rates.bounce)),
        figure("Complaints", Metric::Complained, percent(rates.complaint)),
        figure("Held", Metric::Held, String::new()),
    ])
}
