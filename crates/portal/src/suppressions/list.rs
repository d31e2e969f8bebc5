//! List of suppressed addresses, and the same as CSV.

use askama::Template;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::StatusCode;
use futures_util::stream;
use postroad_app::App;
use postroad_app::access::Operation;
use postroad_model::{ServerId, SuppressionReason, Timestamp};
use postroad_store::{StoreError, Suppression, SuppressionCursor, SuppressionFilter};

use crate::answer::{Answer, download, page_with};
use crate::layout::{Layout, Section};
use crate::query::query;
use crate::shown::When;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;
/// Addresses read for one piece of an export.
const EXPORT_ROWS: usize = 500;

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
    words: &'static str,
    is_chosen: bool,
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
    next: Option<String>,
    problem: Option<String>,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    list(&visit, server, StatusCode::OK, None).await
}

pub(super) async fn list(visit: &Visit, server: i64, status: StatusCode, problem: Option<String>) -> Answer {
    let caller = visit.caller(server, Operation::SuppressionsList).await?;
    let (_, layout) = visit.server_layout(server, "Suppressions", Section::Suppressions).await?;
    let wanted = visit.query.text("reason").to_owned();
    let address = visit.query.text("address").to_owned();
    let (mut problem, mut next) = (problem, None);
    let found = if address.is_empty() {
        let filter =
            SuppressionFilter { reason: SuppressionReason::parse(&wanted), ..SuppressionFilter::default() };
        let (found, has_more) =
            visit.app().list_suppressions(caller.server_id, filter, cursor(visit), PAGE_ROWS).await?;
        next = found.last().filter(|_| has_more).map(|last| {
            let at = last.created_at.as_micros().to_string();
            query(&[("reason", &wanted), ("at", &at), ("after", &last.address)])
        });
        found
    } else {
        match visit.app().find_suppression(caller.server_id, &address).await {
            Ok(found) => found.into_iter().collect(),
            Err(refusal) => {
                problem = Some(crate::problem::Problem::from(refusal).into_form_text()?);
                Vec::new()
            }
        }
    };
    let reasons = SuppressionReason::ALL.map(|reason| ReasonChoice {
        value: reason.as_str(),
        words: words(reason),
        is_chosen: reason.as_str() == wanted,
    });
    let rows = found.into_iter().map(row).collect();
    page_with(status, &ListPage { layout, server, rows, reasons: reasons.into(), address, next, problem })
}

fn cursor(visit: &Visit) -> Option<SuppressionCursor> {
    let created_at = Timestamp::from_micros(visit.query.number("at")?);
    Some(SuppressionCursor { created_at, address: visit.query.text("after").to_owned() })
}

fn row(found: Suppression) -> Row {
    Row {
        address: found.address,
        reason: words(found.reason),
        details: found.details,
        origin: found.origin_message_id.map(|id| id.0),
        created_at: When(found.created_at),
        expires_at: found.expires_at.map(When),
    }
}

fn words(reason: SuppressionReason) -> &'static str {
    match reason {
        SuppressionReason::HardBounce => "Hard bounce",
        SuppressionReason::SoftBounce => "Soft bounces",
        SuppressionReason::Complaint => "Complaint",
        SuppressionReason::Unsubscribe => "Unsubscribed",
        SuppressionReason::Manual => "Added by hand",
    }
}

/// The whole list, read and sent piece by piece.
pub(super) async fn export(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::SuppressionsExport).await?;
    let start = Some(Export { app: visit.app().clone(), server_id: caller.server_id, after: None });
    let body = Body::from_stream(stream::try_unfold(start, next_piece));
    Ok(download("text/csv; charset=utf-8", "suppressions.csv", body))
}

struct Export {
    app: App,
    server_id: ServerId,
    after: Option<String>,
}

async fn next_piece(export: Option<Export>) -> Result<Option<(Bytes, Option<Export>)>, StoreError> {
    let Some(export) = export else { return Ok(None) };
    let is_first = export.after.is_none();
    let page = export.app.export_suppressions(export.server_id, export.after.clone(), EXPORT_ROWS).await?;
    // Every page of the API has a header; one file has one.
    let text = if is_first {
        page.csv
    } else {
        page.csv.split_once('\n').map_or(String::new(), |(_, rows)| rows.to_owned())
    };
    let rest = page.next.map(|after| Export { after: Some(after), ..export });
    Ok(Some((text.into(), rest)))
}
