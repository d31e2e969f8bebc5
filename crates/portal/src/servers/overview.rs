//! Overview of a server: the steps of its set-up, problems, the last day in figures, the week as a chart, and the
//! newest messages.

use askama::Template;
use postroad_app::SearchRequest;
use postroad_app::access::Operation;
use postroad_store::CredentialFilter;

use super::health::{self, Health};
use crate::analytics::{self, Week};
use crate::answer::{Answer, page};
use crate::chart::Part;
use crate::display::{StatusBadge, When};
use crate::domains::find_verified_domain;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

const NEWEST_ROWS: usize = 8;

struct Step {
    is_done: bool,
    text: &'static str,
    path: String,
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
    health: Health,
    /// A chart of the last days, and their rates; `None` without messages.
    week: Option<Week>,
    parts: &'static [Part],
    rows: Vec<Row>,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let (record, layout) = visit.server_layout(server, "Overview", Section::Overview).await?;
    let caller = visit.caller(server, Operation::MessagesSearch).await?;
    let filter = SearchRequest::default()
        .filter()
        .map_err(|_| Problem::Internal("the empty search is invalid".to_owned()))?;
    let newest = visit.app().search_messages(&caller, filter, None, NEWEST_ROWS).await?;
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
    // Without messages, the page shows only the problems of `health`.
    let health = health::read(&visit, &record).await?;
    let mut week = None;
    if !rows.is_empty() {
        let caller = visit.caller(server, Operation::AnalyticsTimeseries).await?;
        week = Some(analytics::week(&visit, &caller).await?);
    }
    page(&OverviewPage {
        layout,
        server,
        name: record.name,
        suspended: record.suspended_reason,
        is_development: record.mode == postroad_model::ServerMode::Development,
        health,
        week,
        parts: &analytics::PARTS,
        steps,
        rows,
    })
}

/// The setup steps in order; empty when all are done.
async fn steps(visit: &Visit, server: i64, has_messages: bool) -> Result<Vec<Step>, Problem> {
    let app = visit.app();
    let filter = CredentialFilter {
        server_id: Some(postroad_model::ServerId(server)),
        revoked: Some(false),
        ..CredentialFilter::default()
    };
    let (keys, _) = app.list_credentials_as(&visit.requester, filter, None, 1).await?;
    let caller = visit.caller(server, Operation::DomainsList).await?;
    let verified = find_verified_domain(visit, &caller).await?;
    let (webhooks, _) = app.list_webhooks(&caller, None, None, 1).await?;
    let step =
        |is_done, text, folder: &str| Step { is_done, text, path: format!("/servers/{server}{folder}") };
    let steps = vec![
        step(!keys.is_empty(), "Create an API key", "/keys"),
        step(verified.is_some(), "Verify a sending domain", "/domains"),
        step(has_messages, "Send a first message", "/first_message"),
        step(!webhooks.is_empty(), "Set up a webhook", "/webhooks"),
    ];
    Ok(if steps.iter().all(|step| step.is_done) { Vec::new() } else { steps })
}
