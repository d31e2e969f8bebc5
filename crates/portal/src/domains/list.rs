//! List of domains, with the form for a new one.

use askama::Template;
use postroad_app::access::Operation;
use postroad_app::domains::DomainView;
use postroad_app::domains::check::RecordStatus;
use postroad_model::DomainId;

use super::filter::{Filters, StateChoice};
use crate::answer::{Answer, page};
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::viewed_account::ViewedAccount;
use crate::visit::Visit;

pub(super) const PAGE_ROWS: usize = 100;

pub(super) struct Row {
    name: String,
    path: String,
    is_verified: bool,
    is_failing: bool,
    /// Owner of the domain, if the page is about another owner.
    owner: Option<&'static str>,
    verified_records: usize,
    records: usize,
    checked_at: Option<When>,
}

#[derive(Template)]
#[template(path = "domains/list.html")]
pub(super) struct ListPage {
    pub(super) layout: Layout,
    /// Set on the page of an account's domains, not on a server's.
    pub(super) account: Option<ViewedAccount>,
    /// Path of the page.
    pub(super) path: String,
    /// Hint on who can send from new domains.
    pub(super) hint: &'static str,
    pub(super) rows: Vec<Row>,
    pub(super) filters: Filters,
    pub(super) states: Vec<StateChoice>,
    pub(super) next: Option<String>,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::DomainsList).await?;
    let (_, layout) = visit.server_layout(server, "Domains", Section::Domains).await?;
    let after = visit.query.number("after").map(DomainId);
    let filters = Filters::read(&visit.query);
    let (domains, next) = visit
        .app()
        .search_domains_as(&caller.requester(), (&caller).into(), &filters.0, after, PAGE_ROWS)
        .await?;
    let next = next.map(|after| filters.query(&after.to_string()));
    let path = format!("/servers/{server}/domains");
    let owner = |view: &DomainView| view.domain.server_id.is_none().then_some("of the account");
    let rows = domains.iter().map(|view| row(view, &path, owner(view))).collect();
    let hint =
        "Only this server can send from a domain added here. A domain of the account is for all servers.";
    let (states, account) = (filters.states(), None);
    page(&ListPage { layout, account, path, hint, rows, filters, states, next })
}

/// A domain as a row. `path` is the path of a list; the domain's page is below it.
pub(super) fn row(view: &DomainView, path: &str, owner: Option<&'static str>) -> Row {
    let is_verified = |status: RecordStatus| status == RecordStatus::Verified;
    Row {
        name: view.domain.name.to_string(),
        path: format!("{path}/{}", view.domain.name),
        owner,
        is_verified: view.domain.verified_by.is_some(),
        is_failing: view.domain.failing_since.is_some(),
        verified_records: view.records.iter().filter(|record| is_verified(record.check.status)).count(),
        records: view.records.len(),
        checked_at: view.domain.checked_at.map(When),
    }
}
