//! Calls of Mailpit's API that change something: deleting messages, and marking them as read.

use std::collections::HashSet;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde::Deserialize;

use super::group::Group;
use super::list_out::ListQuery;
use super::search::Search;
use super::{Mailpit, respond};
use crate::dev::problem::Problem;

const BODY_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default, Deserialize)]
struct ChangeIn {
    /// Messages to change; empty for all.
    #[serde(rename = "IDs", default)]
    ids: Vec<String>,
    #[serde(rename = "Read", default)]
    read: bool,
    #[serde(rename = "Search", default)]
    search: String,
}

impl ChangeIn {
    async fn read(body: Body) -> Result<Self, Problem> {
        let bytes = axum::body::to_bytes(body, BODY_BYTES_MAX).await;
        let bytes = bytes.map_err(|_| Problem::BadQuery("The body is too large".to_owned()))?;
        if bytes.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| Problem::BadQuery(format!("The body is not {{\"IDs\": [\"…\"]}}: {error}")))
    }

    fn select(&self, groups: Vec<Group>) -> Vec<Group> {
        let is_selected = |group: &Group| self.ids.is_empty() || self.ids.iter().any(|id| group.has_id(id));
        groups.into_iter().filter(is_selected).collect()
    }
}

/// Deletes the messages of `{"IDs": […]}`; a request without ids deletes all messages.
pub(super) async fn delete(State(mailpit): State<Mailpit>, body: Body) -> Result<Response, Problem> {
    let request = ChangeIn::read(body).await?;
    remove(&mailpit, &request.select(mailpit.groups()));
    Ok(ok_response())
}

pub(super) async fn delete_search_results(
    State(mailpit): State<Mailpit>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let found = find(&mailpit, &ListQuery::parse(query.as_deref())?.query).await?;
    remove(&mailpit, &found);
    Ok(ok_response())
}

/// Marks messages as read (`{"Read": true, …}`) or unread: those of `"Search": "…"` or `"IDs": […]`, else all.
pub(super) async fn set_read(State(mailpit): State<Mailpit>, body: Body) -> Result<Response, Problem> {
    let request = ChangeIn::read(body).await?;
    let selected = if request.search.is_empty() {
        request.select(mailpit.groups())
    } else {
        find(&mailpit, &request.search).await?
    };
    for group in &selected {
        mailpit.inbox_state.set_read(group, request.read);
    }
    Ok(ok_response())
}

async fn find(mailpit: &Mailpit, query: &str) -> Result<Vec<Group>, Problem> {
    let search = Search::parse(query)?;
    let (groups, inbox_state) = (mailpit.groups(), mailpit.inbox_state.clone());
    mailpit.run(move || search.filter(&groups, &inbox_state)).await
}

fn remove(mailpit: &Mailpit, selected: &[Group]) {
    let ids: HashSet<u64> = selected.iter().flat_map(Group::ids).collect();
    mailpit.inbox.remove(&ids);
    mailpit.inbox_state.note_deleted(selected);
}

fn ok_response() -> Response {
    respond("text/plain; charset=utf-8", "ok")
}
