//! Searches a server's messages.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{Limits, MessageId, Status, Timestamp};
use postroad_store::{FilterTerm, Matcher, Needle, SearchFilter, SearchPage, StoreError};

use super::query;
use crate::{App, Caller, FieldProblem};

/// After this time the API returns a page with the matches so far and a cursor to continue.
const PAGE_TIME_MAX: Duration = Duration::from_millis(80);
/// The same limit for the portal. It is lower, because the portal's page reads other data as well.
const PORTAL_TIME_MAX: Duration = Duration::from_millis(50);

/// Parses a query; a problem names `field`, the field of the request that contained the query.
pub(crate) fn parse_query(field: &str, text: &str) -> Result<SearchFilter, FieldProblem> {
    query::parse(text)
        .map_err(|problem| FieldProblem::new(format!("/{field}"), format!("`{field}` {problem}")))
}

/// Conditions of a search; all of them must hold.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Text in the query language (`query.rs`).
    pub q: Option<String>,
    pub statuses: Vec<Status>,
    pub tag: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub domain: Option<String>,
    pub template: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub metadata: Vec<(String, String)>,
}

impl SearchRequest {
    /// Parses the query and combines it with the other conditions.
    pub fn filter(self) -> Result<SearchFilter, Vec<FieldProblem>> {
        let mut problems = Vec::new();
        let mut filter = SearchFilter::default();
        if let Some(q) = &self.q {
            match parse_query("q", q) {
                Ok(parsed) => filter = parsed,
                Err(problem) => problems.push(problem),
            }
        }
        if !self.statuses.is_empty() {
            let wanted =
                |status: &Status| filter.statuses.as_ref().is_none_or(|other| other.contains(status));
            filter.statuses = Some(self.statuses.into_iter().filter(wanted).collect());
        }
        let mut add = |name: &str, value: Option<String>, matcher: fn(String) -> Matcher| match value {
            Some(value) if value.is_empty() => {
                problems.push(FieldProblem::new(format!("/{name}"), format!("`{name}` is empty")));
            }
            Some(value) if is_too_long(&value) => problems.push(too_long_problem(name)),
            Some(value) => filter.terms.push(FilterTerm { matcher: matcher(value), is_negated: false }),
            None => {}
        };
        add("tag", self.tag, Matcher::Tag);
        add("from", self.from, |text| Matcher::From(Needle::new(&text)));
        add("to", self.to, |text| Matcher::To(Needle::new(&text)));
        add("domain", self.domain, Matcher::Domain);
        add("template", self.template, Matcher::Template);
        if self.metadata.len() > Limits::METADATA_PAIRS_MAX {
            let message = format!("`metadata` may have at most {} entries", Limits::METADATA_PAIRS_MAX);
            problems.push(FieldProblem::new("/metadata", message));
        }
        for (key, value) in self.metadata {
            if is_too_long(&key) || is_too_long(&value) {
                problems.push(too_long_problem("metadata"));
                break;
            }
            filter.terms.push(FilterTerm { matcher: Matcher::Metadata { key, value }, is_negated: false });
        }
        filter.since = self.since.max(filter.since);
        filter.until = [self.until, filter.until].into_iter().flatten().min();
        if problems.is_empty() { Ok(filter) } else { Err(problems) }
    }
}

fn is_too_long(text: &str) -> bool {
    text.chars().nth(query::QUERY_CHARS_MAX).is_some()
}

fn too_long_problem(name: &str) -> FieldProblem {
    let message = format!("`{name}` is longer than {} characters", query::QUERY_CHARS_MAX);
    FieldProblem::new(format!("/{name}"), message)
}

impl App {
    /// A page of messages, newest first. It may be short or empty and still have a next page: a search with few matches
    /// stops at its time limit.
    pub async fn search_messages(
        &self,
        caller: &Caller,
        filter: SearchFilter,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<SearchPage, StoreError> {
        self.search_within(PAGE_TIME_MAX, caller, filter, before, limit).await
    }

    /// Like `search_messages`, for the list of the portal.
    pub async fn search_messages_for_portal(
        &self,
        caller: &Caller,
        filter: SearchFilter,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<SearchPage, StoreError> {
        self.search_within(PORTAL_TIME_MAX, caller, filter, before, limit).await
    }

    async fn search_within(
        &self,
        time_max: Duration,
        caller: &Caller,
        filter: SearchFilter,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<SearchPage, StoreError> {
        let _permit = self.inner.long_reads.permit(caller.account_id).await;
        self.inner.store.search(caller.server_id, &Arc::new(filter), before, limit, time_max).await
    }
}
