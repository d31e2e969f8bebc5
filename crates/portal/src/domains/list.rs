//! List of domains, with the form for a new one.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::domains::DomainView;
use postroad_app::domains::check::RecordStatus;
use postroad_model::DomainId;

use crate::answer::{Answer, page_with};
use crate::layout::{Layout, Section};
use crate::query::page_after;
use crate::shown::When;
use crate::visit::Visit;

const PAGE_ROWS: usize = 100;

struct Row {
    name: String,
    is_verified: bool,
    is_failing: bool,
    is_of_account: bool,
    verified_records: usize,
    records: usize,
    checked_at: Option<When>,
}

#[derive(Template)]
#[template(path = "domains/list.html")]
struct ListPage {
    layout: Layout,
    server: i64,
    rows: Vec<Row>,
    next: Option<String>,
    problem: Option<String>,
    name: String,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    list(&visit, server, StatusCode::OK, None, "").await
}

pub(super) async fn list(
    visit: &Visit,
    server: i64,
    status: StatusCode,
    problem: Option<String>,
    name: &str,
) -> Answer {
    let caller = visit.caller(server, Operation::DomainsList).await?;
    let (_, layout) = visit.server_layout(server, "Domains", Section::Domains).await?;
    let after = visit.query.number("after").map(DomainId);
    let (domains, has_more) = visit.app().list_domains(&caller, after, PAGE_ROWS).await?;
    let next = page_after(domains.last().map(|last| last.domain.id), has_more);
    let rows = domains.iter().map(row).collect();
    page_with(status, &ListPage { layout, server, rows, next, problem, name: name.to_owned() })
}

fn row(view: &DomainView) -> Row {
    let is_verified = |status: RecordStatus| status == RecordStatus::Verified;
    Row {
        name: view.domain.name.to_string(),
        is_verified: view.domain.verified_by.is_some(),
        is_failing: view.domain.failing_since.is_some(),
        is_of_account: view.domain.server_id.is_none(),
        verified_records: view.records.iter().filter(|record| is_verified(record.check.status)).count(),
        records: view.records.len(),
        checked_at: view.domain.checked_at.map(When),
    }
}
