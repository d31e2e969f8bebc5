//! The page with an audit log: entries, newest first, by the filters of the query.

use askama::Template;

use super::Log;
use super::filter::{Choice, Filters, operations};
use super::row::{Row, row};
use crate::answer::{Answer, page};
use crate::layout::Layout;
use crate::operator::TABS;
use crate::text_budget::TextBudget;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;

#[derive(Template)]
#[template(path = "audit/list.html")]
struct AuditPage {
    layout: Layout,
    log: Log,
    /// Path of the page.
    path: String,
    rows: Vec<Row>,
    next: Option<String>,
    filters: Filters,
    actors: Vec<Choice>,
    subjects: Vec<Choice>,
    operations: Vec<&'static str>,
}

pub(super) async fn show(visit: &Visit, log: Log) -> Answer {
    let filters = Filters::read(&visit.query, &visit.zone)?;
    let before = visit.query.number("before");
    let (entries, next) = visit
        .app()
        .list_named_audit(&visit.requester, Some(log.account_id()), filters.selection(), before, PAGE_ROWS)
        .await?;
    let layout = visit.layout("Audit log", log.section()).await?;
    let next = next.map(|next| filters.query(&next.to_string()));
    let (is_own, mut budget) = (log.is_own(), TextBudget::default());
    page(&AuditPage {
        layout,
        path: log.path(),
        log,
        rows: entries.into_iter().map(|entry| row(entry, is_own, &mut budget)).collect(),
        next,
        actors: filters.actors(),
        subjects: filters.subjects(),
        operations: operations(),
        filters,
    })
}
