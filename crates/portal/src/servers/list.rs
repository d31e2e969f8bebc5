//! List of servers with the figures of their last day, and the form for a new one.

use askama::Template;
use axum::http::StatusCode;
use postroad_model::{ServerId, ServerMode};
use postroad_store::{Server, ServerFilter};

use super::health::{Figure, HealthSummary, read_summary};
use super::{PoolChoice, list_pool_choices};
use crate::answer::{Answer, page_with_status};
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::query::query;
use crate::visit::Visit;

const PAGE_ROWS: usize = 20;
const DELETED_ROWS: usize = 100;

struct Row {
    id: i64,
    name: String,
    is_development: bool,
    suspended: Option<String>,
    created_at: When,
    /// Figures of the last day, and the number of waiting messages.
    figures: Vec<Figure>,
    problems: usize,
}

struct DeletedRow {
    id: i64,
    name: String,
    /// When the server's data is removed.
    until: Option<When>,
}

#[derive(Template)]
#[template(path = "servers/list.html")]
struct ListPage {
    layout: Layout,
    rows: Vec<Row>,
    /// Names of the columns with figures.
    columns: Vec<String>,
    next: Option<String>,
    /// Part of the name to search for.
    q: String,
    /// Filter for suspended servers: `yes`, `no` or empty.
    suspended: String,
    pools: Vec<PoolChoice>,
    deleted: Vec<DeletedRow>,
    problem: Option<String>,
    /// Name as typed in the form for a new server.
    name: String,
}

pub(super) async fn show(visit: Visit) -> Answer {
    list(&visit, StatusCode::OK, None, "").await
}

/// The list, with the problem of a refused form.
pub(super) async fn list(visit: &Visit, status: StatusCode, problem: Option<String>, name: &str) -> Answer {
    let after = visit.query.number("after").map(ServerId);
    let (q, suspended) = (visit.query.text("q").to_owned(), visit.query.text("suspended").to_owned());
    let filter = ServerFilter {
        name_part: Some(q.clone()).filter(|part| !part.is_empty()),
        suspended: visit.query.yes_or_no("suspended"),
        ..visit.own_servers()
    };
    let (servers, has_more) = visit.app().list_servers_as(&visit.requester, filter, after, PAGE_ROWS).await?;
    let layout = visit.layout("Servers", Section::Servers).await?;
    let next = servers.last().filter(|_| has_more);
    let next =
        next.map(|last| query(&[("q", &q), ("suspended", &suspended), ("after", &last.id.to_string())]));
    let pools = list_pool_choices(visit, visit.person.user.account_id, None).await?;
    let mut rows = Vec::new();
    for server in servers {
        let summary = read_summary(visit, server.id.0).await?;
        rows.push(row(server, summary));
    }
    let columns = rows.first().map(|row| row.figures.iter().map(|figure| figure.label.clone()).collect());
    let filter = ServerFilter { deleted: true, ..visit.own_servers() };
    let (deleted, _) = visit.app().list_servers_as(&visit.requester, filter, None, DELETED_ROWS).await?;
    let deleted = deleted.into_iter().map(|server| DeletedRow {
        id: server.id.0,
        name: server.name,
        until: server.delete_at.map(When),
    });
    let (deleted, name) = (deleted.collect(), name.to_owned());
    let columns = columns.unwrap_or_default();
    page_with_status(
        status,
        &ListPage { layout, rows, columns, next, q, suspended, pools, deleted, problem, name },
    )
}

fn row(server: Server, summary: HealthSummary) -> Row {
    Row {
        id: server.id.0,
        name: server.name,
        is_development: server.mode == ServerMode::Development,
        suspended: server.suspended_reason,
        created_at: When(server.created_at),
        figures: summary.figures,
        problems: summary.problems,
    }
}
