//! Releases, retries or cancels many messages: those that are ticked, or all that a search finds, as a job.

use askama::Template;
use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::header::REFRESH;
use postroad_app::JobRefusal;
use postroad_app::access::Operation;
use postroad_model::MessageId;
use postroad_store::JobState;

use super::act::Act;
use super::search::Search;
use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::shown::count;
use crate::visit::Form;
use crate::visit::Visit;

/// Ticked messages of one form: a page has fewer.
const TICKED_MAX: usize = 500;

#[derive(Template)]
#[template(path = "messages/job.html")]
struct JobPage {
    layout: Layout,
    server: i64,
    kind: &'static str,
    query: String,
    is_running: bool,
    has_failed: bool,
    done: String,
    total: String,
    failed: u64,
    done_count: u64,
    total_count: u64,
    problems: Vec<(i64, String)>,
}

pub(super) async fn submit(Path(server): Path<i64>, form: Form) -> Answer {
    let act = Act::parse(form.fields.text("act"))?;
    let caller = act.caller(&form.visit, server).await?;
    let app = form.visit.app();
    if form.fields.is_ticked("all") {
        let Act::Message(action) = act else {
            return Err(Problem::Invalid("Tick the messages to cancel.".to_owned()));
        };
        let started = app.start_job(&caller, action, form.fields.text("q"), false).await;
        let started = started.map_err(|refusal| match refusal {
            JobRefusal::Query(problem) => Problem::Invalid(problem.message),
            JobRefusal::TooMany => {
                Problem::Invalid("Ten jobs are running already: wait for one to end.".to_owned())
            }
            JobRefusal::Store(error) => error.into(),
        })?;
        let id = started.id.ok_or_else(|| Problem::Internal("a job without an id".to_owned()))?;
        return Ok(see_other(&format!("/servers/{server}/jobs/{id}")));
    }
    let ids: Vec<i64> = form.fields.all("id").take(TICKED_MAX).filter_map(|id| id.parse().ok()).collect();
    if ids.is_empty() {
        return Err(Problem::Invalid(
            "No message is ticked. Go back and tick some, or choose all.".to_owned(),
        ));
    }
    let mut is_partial = false;
    for id in ids {
        match act.run(app, &caller, MessageId(id)).await {
            Ok(()) => {}
            Err(Problem::Invalid(_) | Problem::NotFound) => is_partial = true,
            Err(other) => return Err(other),
        }
    }
    let done = if is_partial { "partly" } else { "changed" };
    Ok(see_other(&format!("/servers/{server}/messages{}", Search::of(&form.fields).done(done))))
}

/// Progress of a job; the page reloads itself while it runs.
pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::JobsGet).await?;
    let job = visit.app().find_job(caller.server_id, id).await?.ok_or(Problem::NotFound)?;
    let (_, layout) = visit.server_layout(server, "Job", Section::Messages).await?;
    let is_running = job.state == JobState::Running;
    let mut response = page(&JobPage {
        layout,
        server,
        kind: job.kind.as_str(),
        query: job.request,
        is_running,
        has_failed: job.state == JobState::Failed,
        done: count(job.done),
        total: count(job.total.max(job.done)),
        failed: job.failed,
        done_count: job.done,
        total_count: job.total.max(job.done).max(1),
        problems: job.problems.into_iter().map(|problem| (problem.id, problem.message)).collect(),
    })?;
    if is_running {
        response.headers_mut().insert(REFRESH, HeaderValue::from_static("2"));
    }
    Ok(response)
}
