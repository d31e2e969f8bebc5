//! List of a server's API keys, with the form for a new one.

use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use postroad_model::{CredentialId, Scope, ServerId, Timestamp};
use postroad_store::{Credential, CredentialFilter};

use crate::answer::{Answer, page_with_status};
use crate::days;
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::once::new_once;
use crate::path::Path;
use crate::query::query;
use crate::text_budget::escaped_bytes;
use crate::visit::Visit;

const PAGE_ROWS: usize = 20;
/// Maximum bytes of the rows of one page: a key can have a hundred networks.
const ROWS_BYTES_MAX: usize = 60_000;
/// Estimated bytes of markup for one row, with its forms.
const MARKUP_BYTES: usize = 2_500;

struct Row {
    id: i64,
    name: String,
    scope: &'static str,
    is_test: bool,
    is_holding: bool,
    networks: String,
    /// `Revoked`, `Expired` or `Replaced`; otherwise `None`. A replaced key works until it expires.
    ended: Option<&'static str>,
    expires_at: Option<When>,
    /// The last day, in UTC, on which the key works, for a field of a form.
    last_day: String,
    /// Incremented by every change; a form with an older version is refused.
    version: i64,
    last_used_at: Option<When>,
    created_at: When,
}

#[derive(Template)]
#[template(path = "keys/list.html")]
struct ListPage {
    layout: Layout,
    server: i64,
    rows: Vec<Row>,
    next: Option<String>,
    /// Part of the name to search for.
    q: String,
    /// `yes` for revoked keys, `no` for keys that are not revoked, empty for all.
    revoked: String,
    /// Error of the form for a new key.
    problem: Option<String>,
    /// Idempotency key of the form: submitting it twice creates one key.
    once: String,
    /// Whether the server has no key yet.
    is_first: bool,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    list(&visit, server, StatusCode::OK, None).await
}

pub(super) async fn list(visit: &Visit, server: i64, status: StatusCode, problem: Option<String>) -> Answer {
    let (_, layout) = visit.server_layout(server, "Keys", Section::Keys).await?;
    let (q, revoked) = (visit.query.text("q").to_owned(), visit.query.text("revoked").to_owned());
    let filter = CredentialFilter {
        server_id: Some(ServerId(server)),
        name_part: Some(q.clone()).filter(|part| !part.is_empty()),
        revoked: visit.query.yes_or_no("revoked"),
        ..CredentialFilter::default()
    };
    let after = visit.query.number("after").map(CredentialId);
    let (keys, mut has_more) =
        visit.app().list_credentials_as(&visit.requester, filter, after, PAGE_ROWS).await?;
    let now = visit.app().now();
    let mut rows: Vec<Row> = keys.into_iter().map(|key| row(key, now)).collect();
    has_more |= drop_excess_rows(&mut rows);
    let next = rows.last().filter(|_| has_more);
    let next = next.map(|last| query(&[("q", &q), ("revoked", &revoked), ("after", &last.id.to_string())]));
    let once = new_once();
    let is_first = rows.is_empty() && q.is_empty() && revoked.is_empty();
    page_with_status(status, &ListPage { layout, server, rows, next, q, revoked, problem, once, is_first })
}

/// Drops the rows beyond `ROWS_BYTES_MAX`, but never the first. Returns whether rows were dropped.
fn drop_excess_rows(rows: &mut Vec<Row>) -> bool {
    let mut bytes = 0;
    let fitting = rows.iter().take_while(|row| {
        bytes += MARKUP_BYTES + 2 * (escaped_bytes(&row.name) + row.networks.len());
        bytes <= ROWS_BYTES_MAX
    });
    let (fitting, all) = (fitting.count().max(1), rows.len());
    rows.truncate(fitting);
    fitting < all
}

/// The day of the moment before `end`, such as `2027-01-31`: a key that ends at midnight works until the day before.
fn last_day(end: Timestamp) -> String {
    days::day_of(end.minus(Duration::from_micros(1)))
}

fn row(key: Credential, now: Timestamp) -> Row {
    let ended = match &key {
        Credential { revoked_at: Some(_), .. } => Some("Revoked"),
        Credential { expires_at: Some(at), .. } if *at <= now => Some("Expired"),
        Credential { replaced_by: Some(_), .. } => Some("Replaced"),
        _ => None,
    };
    let networks: Vec<String> = key.allow.iter().map(ToString::to_string).collect();
    Row {
        id: key.id.0,
        scope: scope_words(key.scope),
        is_test: key.test,
        is_holding: key.hold,
        networks: networks.join(", "),
        ended,
        expires_at: key.expires_at.map(When),
        last_day: key.expires_at.map(last_day).unwrap_or_default(),
        version: key.version,
        last_used_at: key.last_used_at.map(When),
        created_at: When(key.created_at),
        name: key.name,
    }
}

fn scope_words(scope: Scope) -> &'static str {
    match scope {
        Scope::Full => "everything",
        Scope::Send => "send",
        Scope::Read => "read",
        Scope::Address => "SMTP by address",
    }
}
