//! List of messages with search, filters and pages by keyset.

use askama::Template;
use postroad_app::SearchRequest;
use postroad_app::access::Operation;
use postroad_model::{DomainName, MessageId, Status};
use postroad_store::{SearchItem, Template as StoredTemplate, TemplateKind};

use super::search::{Search, Tab, quoted};
use crate::answer::{Answer, page};
use crate::display::{StatusBadge, When, status_words};
use crate::domains::find_verified_domain;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::problem::{Problem, sentences};
use crate::query::query;
use crate::redirect::see_other;
use crate::snippets;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;
/// Maximum number of domains to choose from; others are searched for with `domain:`.
const DOMAINS_MAX: usize = 50;
/// Maximum number of templates that the search suggests.
const TEMPLATES_MAX: usize = 50;

struct Row {
    id: i64,
    status: StatusBadge,
    to: String,
    subject: String,
    tag: Option<String>,
    /// The time of acceptance; on the tab of scheduled messages, the time at which the message will be sent.
    at: When,
    is_test: bool,
    held_reason: Option<String>,
}

struct SavedSearchRow {
    id: i64,
    name: String,
    /// Query string of the link.
    query: String,
    is_current: bool,
}

struct TemplateChoice {
    alias: String,
    name: String,
}

struct StatusChoice {
    value: &'static str,
    label: &'static str,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "messages/list.html")]
struct ListPage {
    layout: Layout,
    server: i64,
    search: Search,
    statuses: Vec<StatusChoice>,
    domains: Vec<String>,
    /// Templates to suggest.
    templates: Vec<TemplateChoice>,
    rows: Vec<Row>,
    /// Error in the search.
    problem: Option<String>,
    /// Link to the next page.
    next: Option<String>,
    /// Whether this is not the first page.
    is_later: bool,
    /// Command that sends a first message, if the server has none.
    first_command: Option<String>,
    searches: Vec<SavedSearchRow>,
}

impl ListPage {
    fn is_tab(&self, name: &str) -> bool {
        self.search.tab.name() == name
    }

    /// Whether the search of the page can be saved.
    fn is_new_search(&self) -> bool {
        let is_saved = self.searches.iter().any(|search| search.is_current);
        self.search.is_searching() && self.problem.is_none() && !is_saved
    }

    /// Query string for the messages of the current tab that have this tag.
    fn of_tag(&self, tag: &str) -> String {
        let tab = ("tab", self.search.tab.name());
        if tag.trim() == tag {
            query(&[tab, ("tag", tag)])
        } else {
            // The field `tag` is read without outer spaces, so a tag with outer spaces goes into the query.
            query(&[tab, ("q", &format!("tag:{}", quoted(tag)))])
        }
    }
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::MessagesSearch).await?;
    let (_, layout) = visit.server_layout(server, "Messages", Section::Messages).await?;
    let (app, search) = (visit.app(), Search::of(&visit.query));
    let before = visit.query.number("before").map(MessageId);
    if let Some(id) = search.id() {
        let by_id = SearchRequest { q: Some(format!("id:{id}")), ..SearchRequest::default() };
        let filter = by_id.filter().map_err(|problems| Problem::Invalid(sentences(&problems)))?;
        if !app.search_messages(&caller, filter, None, 1).await?.items.is_empty() {
            return Ok(see_other(&format!("/servers/{server}/messages/{id}")));
        }
    }
    let (mut rows, mut next, mut problem) = (Vec::new(), None, None);
    match search.request().filter() {
        Err(problems) => problem = Some(sentences(&problems)),
        Ok(filter) => {
            let found = app.search_messages_for_portal(&caller, filter, before, PAGE_ROWS).await?;
            if let ([item], None) = (found.items.as_slice(), before)
                && search.is_name_of(item)
            {
                return Ok(see_other(&format!("/servers/{server}/messages/{}", item.id)));
            }
            rows = found.items.into_iter().map(|item| row(item, search.tab)).collect();
            next = found.next.map(|next| search.query_before(&next.to_string()));
        }
    }
    let statuses = Status::ALL.map(|status| StatusChoice {
        value: status.as_str(),
        label: status_words(status),
        is_chosen: status.as_str() == search.status,
    });
    let mut first_command = None;
    if rows.is_empty() && before.is_none() && !search.is_searching() && search.tab == Tab::All {
        let verified = find_verified_domain(&visit, &caller).await?;
        let domain = verified.as_ref().map(DomainName::as_str);
        first_command = Some(snippets::first_command(&visit.base_url, &visit.person.user.email, domain));
    }
    let (domains, _) = app.list_domains(&caller, None, DOMAINS_MAX).await?;
    let templates = suggested_templates(&visit, server).await?;
    let current = search.query();
    let saved = app.list_saved_searches(&visit.person, &caller).await?;
    let saved = saved.into_iter().map(|saved| SavedSearchRow {
        id: saved.id.0,
        name: saved.name,
        is_current: saved.query == current,
        query: saved.query,
    });
    page(&ListPage {
        layout,
        server,
        search,
        statuses: statuses.into(),
        domains: domains.into_iter().map(|view| view.domain.name.to_string()).collect(),
        templates,
        rows,
        problem,
        next,
        is_later: before.is_some(),
        first_command,
        searches: saved.collect(),
    })
}

async fn suggested_templates(visit: &Visit, server: i64) -> Result<Vec<TemplateChoice>, Problem> {
    let caller = visit.caller(server, Operation::TemplatesList).await?;
    let (found, _) = visit.app().list_templates(&caller, None, None, TEMPLATES_MAX).await?;
    let standard = found.into_iter().filter(|template| template.kind == TemplateKind::Standard);
    let choice =
        |template: StoredTemplate| Some(TemplateChoice { alias: template.alias?, name: template.name });
    Ok(standard.filter_map(choice).collect())
}

fn row(item: SearchItem, tab: Tab) -> Row {
    Row {
        id: item.id.0,
        status: StatusBadge(item.status),
        to: item.rcpt_to,
        subject: item.subject,
        tag: item.tag,
        at: When(item.send_at.filter(|_| tab == Tab::Scheduled).unwrap_or(item.created_at)),
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
