//! List of suppressed addresses.

use askama::Template;
use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_model::{SuppressionReason, Timestamp};
use postroad_store::{Suppression, SuppressionCursor};

use super::filter::Filters;
use crate::answer::{Answer, page_with_status};
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;

struct Row {
    address: String,
    reason: &'static str,
    details: String,
    origin: Option<i64>,
    created_at: When,
    expires_at: Option<When>,
}

struct ReasonChoice {
    value: &'static str,
    label: &'static str,
    is_chosen: bool,
    /// Whether this is the default reason of an address that a person adds.
    is_usual: bool,
}

#[derive(Template)]
#[template(path = "suppressions/list.html")]
struct ListPage {
    layout: Layout,
    server: i64,
    rows: Vec<Row>,
    reasons: Vec<ReasonChoice>,
    /// Address to search for.
    address: String,
    filters: Filters,
    next: Option<String>,
    problem: Option<String>,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    list(&visit, server, StatusCode::OK, None).await
}

pub(super) async fn list(visit: &Visit, server: i64, status: StatusCode, problem: Option<String>) -> Answer {
    let caller = visit.caller(server, Operation::SuppressionsList).await?;
    let (_, layout) = visit.server_layout(server, "Suppressions", Section::Suppressions).await?;
    let address = visit.query.text("address").to_owned();
    let filters = Filters::read(&visit.query, &visit.zone);
    let (mut next, mut problem) = (None, problem);
    let found = if address.is_empty() {
        let (found, has_more) = visit
            .app()
            .list_suppressions(caller.server_id, filters.selection(), cursor(visit), PAGE_ROWS)
            .await?;
        let last = found.last().filter(|_| has_more);
        next = last.map(|last| filters.query(Some(&SuppressionCursor::after(last))));
        found
    } else {
        match visit.app().find_suppression(caller.server_id, &address).await {
            Ok(found) => found.into_iter().collect(),
            Err(refusal) => {
                problem = Some(Problem::from(refusal).into_form_text()?);
                Vec::new()
            }
        }
    };
    let reasons = SuppressionReason::ALL.map(|reason| ReasonChoice {
        value: reason.as_str(),
        label: reason_label(reason),
        is_chosen: filters.reason == Some(reason),
        is_usual: reason == SuppressionReason::Manual,
    });
    let rows = found.into_iter().map(row).collect();
    let reasons = reasons.into();
    page_with_status(status, &ListPage { layout, server, rows, reasons, address, filters, next, problem })
}

fn cursor(visit: &Visit) -> Option<SuppressionCursor> {
    let created_at = Timestamp::from_micros(visit.query.number("at")?);
    Some(SuppressionCursor { created_at, address: visit.query.text("after").to_owned() })
}

fn row(found: Suppression) -> Row {
    Row {
        address: found.address,
        reason: reason_label(found.reason),
        details: found.details,
        origin: found.origin_message_id.map(|id| id.0),
        created_at: When(found.created_at),
        expires_at: found.expires_at.map(When),
    }
}

fn reason_label(reason: SuppressionReason) -> &'static str {
    match reason {
        SuppressionReason::HardBounce => "Hard bounce",
        SuppressionReason::SoftBounce => "Soft bounces",
        SuppressionReason::Complaint => "Complaint",
        SuppressionReason::Unsubscribe => "Unsubscribed",
        SuppressionReason::Manual => "Added by hand",
    }
}
