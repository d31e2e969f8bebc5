//! List of messages with search, statuses and pages by keyset.

use askama::Template;
use axum::extract::Path;
use postroad_app::SearchRequest;
use postroad_app::access::Operation;
use postroad_model::{MessageId, Status};
use postroad_store::SearchItem;

use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::problem::sentences;
use crate::query::query;
use crate::shown::{StatusBadge, When, status_words};
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;

/// One tab of the list: the messages of some statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    All,
    Held,
    Scheduled,
}

impl Tab {
    pub(super) fn parse(text: &str) -> Self {
        match text {
            "held" => Self::Held,
            "scheduled" => Self::Scheduled,
            _ => Self::All,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Held => "held",
            Self::Scheduled => "scheduled",
        }
    }

    fn statuses(self) -> Vec<Status> {
        match self {
            Self::All => Vec::new(),
            Self::Held => vec![Status::Held],
            Self::Scheduled => vec![Status::Scheduled],
        }
    }
}

struct Row {
    id: i64,
    status: StatusBadge,
    to: String,
    subject: String,
    tag: Option<String>,
    at: When,
    is_test: bool,
    held_reason: Option<String>,
}

struct StatusChoice {
    value: &'static str,
    words: &'static str,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "messages/list.html")]
struct ListPage {
    layout: Layout,
    server: i64,
    tab: Tab,
    q: String,
    statuses: Vec<StatusChoice>,
    rows: Vec<Row>,
    /// What is wrong in the search.
    problem: Option<String>,
    /// Link to the next page.
    next: Option<String>,
    /// Whether this is not the first page.
    is_later: bool,
    is_searching: bool,
}

impl ListPage {
    fn is_tab(&self, name: &str) -> bool {
        self.tab.name() == name
    }

    /// Link to the first page.
    fn first(&self) -> String {
        format!("/servers/{}/messages{}", self.server, query(&[("tab", self.tab.name()), ("q", &self.q)]))
    }

    /// Link to the CSV export of this search.
    fn export(&self) -> String {
        let status = self.statuses.iter().find(|status| status.is_chosen).map_or("", |status| status.value);
        let pairs = [("tab", self.tab.name()), ("q", &*self.q), ("status", status)];
        format!("/servers/{}/messages/export{}", self.server, query(&pairs))
    }

    #[expect(clippy::unused_self, reason = "templates call methods")]
    fn of_tag(&self, tag: &str) -> String {
        query(&[("q", &format!("tag:\"{}\"", tag.replace('"', "")))])
    }
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::MessagesSearch).await?;
    let (_, layout) = visit.server_layout(server, "Messages", Section::Messages).await?;
    let tab = Tab::parse(visit.query.text("tab"));
    let (q, wanted) = (visit.query.text("q").to_owned(), visit.query.text("status").to_owned());
    let before = visit.query.number("before");
    let (mut rows, mut next, mut problem) = (Vec::new(), None, None);
    match request(&visit).filter() {
        Err(problems) => problem = Some(sentences(&problems).replace("`q` ", "The search ")),
        Ok(filter) => {
            let found = visit
                .app()
                .search_messages(caller.server_id, filter, before.map(MessageId), PAGE_ROWS)
                .await?;
            rows = found.items.into_iter().map(row).collect();
            next = found.next.map(|next| {
                let before = next.0.to_string();
                query(&[("tab", tab.name()), ("q", &q), ("status", &wanted), ("before", &before)])
            });
        }
    }
    let statuses = Status::ALL.map(|status| StatusChoice {
        value: status.as_str(),
        words: status_words(status),
        is_chosen: status.as_str() == wanted,
    });
    let is_searching = !q.is_empty() || !wanted.is_empty();
    page(&ListPage {
        layout,
        server,
        tab,
        q,
        statuses: statuses.into(),
        rows,
        problem,
        next,
        is_later: before.is_some(),
        is_searching,
    })
}

/// The search that the query of the page asks for.
pub(super) fn request(visit: &Visit) -> SearchRequest {
    let tab = Tab::parse(visit.query.text("tab"));
    let mut statuses = tab.statuses();
    if tab == Tab::All {
        statuses.extend(postroad_app::parse_status(visit.query.text("status")));
    }
    let q = visit.query.filled("q").map(ToOwned::to_owned);
    SearchRequest { q, statuses, ..SearchRequest::default() }
}

fn row(item: SearchItem) -> Row {
    Row {
        id: item.id.0,
        status: StatusBadge(item.status),
        to: item.rcpt_to,
        subject: item.subject,
        tag: item.tag,
        at: When(item.created_at),
        is_test: item.test,
        held_reason: item.held_reason.map(held_words),
    }
}

fn held_words(reason: String) -> String {
    match reason.as_str() {
        "suppressed" => "the recipient is suppressed".to_owned(),
        "hourly_limit" => "the hourly limit was reached".to_owned(),
        "account_limit" => "a limit of the account was reached".to_owned(),
        "development" => "the server is in development mode".to_owned(),
        "credential" => "its key holds everything".to_owned(),
        _ => reason,
    }
}
