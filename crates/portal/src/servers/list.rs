//! List of servers, with the form for a new one.

use askama::Template;
use axum::http::StatusCode;
use postroad_model::{ServerId, ServerMode};
use postroad_store::Server;

use crate::answer::{Answer, page_with};
use crate::layout::{Layout, Section};
use crate::query::query;
use crate::shown::When;
use crate::visit::Visit;

const PAGE_ROWS: usize = 100;

struct Row {
    id: i64,
    name: String,
    is_development: bool,
    suspended: Option<String>,
    created_at: When,
}

#[derive(Template)]
#[template(path = "servers/list.html")]
struct ListPage {
    layout: Layout,
    rows: Vec<Row>,
    next: Option<String>,
    problem: Option<String>,
    name: String,
}

pub(super) async fn show(visit: Visit) -> Answer {
    list(&visit, StatusCode::OK, None, "").await
}

/// The list, with what is wrong in the form beside it.
pub(super) async fn list(visit: &Visit, status: StatusCode, problem: Option<String>, name: &str) -> Answer {
    let after = visit.query.number("after").map(ServerId);
    let (servers, has_more) =
        visit.app().list_servers_of(&visit.by, visit.own_servers(), after, PAGE_ROWS).await?;
    let layout = visit.layout("Servers", Section::Servers).await?;
    let next = servers.last().filter(|_| has_more).map(|last| query(&[("after", &last.id.to_string())]));
    let rows = servers.into_iter().map(row).collect();
    page_with(status, &ListPage { layout, rows, next, problem, name: name.to_owned() })
}

fn row(server: Server) -> Row {
    Row {
        id: server.id.0,
        name: server.name,
        is_development: server.mode == ServerMode::Development,
        suspended: server.suspended_reason,
        created_at: When(server.created_at),
    }
}
