//! Jobs of a server: their list, and the progress of one.

use askama::Template;
use postroad_app::access::Operation;
use postroad_store::{JobKind, JobProblem, JobState, MessageJob};

use crate::answer::{Answer, page};
use crate::display::{When, count};
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::problem::Problem;
use crate::query::query;
use crate::sentence::Sentence;
use crate::text_budget::TextBudget;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;
/// Maximum number of bytes shown of each query in the list.
const QUERY_BYTES_MAX: usize = 500;

struct JobRow {
    id: i64,
    kind: &'static str,
    /// The search, or its beginning; empty for a finished erasure, which also removes its search.
    query: String,
    state: JobState,
    done: String,
    total: String,
    failed: u64,
    created_at: When,
}

impl JobRow {
    fn is_running(&self) -> bool {
        self.state == JobState::Running
    }

    fn has_failed(&self) -> bool {
        self.state == JobState::Failed
    }
}

#[derive(Template)]
#[template(path = "messages/jobs.html")]
struct ListPage {
    layout: Layout,
    server: i64,
    rows: Vec<JobRow>,
    has_running: bool,
    /// Link to the next page.
    next: Option<String>,
}

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
    /// Problems, each with the id of its message; `None` for a problem of the whole job.
    problems: Vec<(Option<i64>, Sentence)>,
    note: Option<String>,
}

pub(super) async fn list(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::JobsGet).await?;
    let (_, layout) = visit.server_layout(server, "Jobs", Section::Messages).await?;
    let before = visit.query.number("before");
    let (jobs, has_more) = visit.app().list_jobs(caller.server_id, before, PAGE_ROWS).await?;
    let next = jobs.last().filter(|_| has_more).map(|last| query(&[("before", &last.id.to_string())]));
    let has_running = jobs.iter().any(|job| job.state == JobState::Running);
    let mut budget = TextBudget::default();
    let rows = jobs.iter().map(|job| row(job, &mut budget)).collect();
    page(&ListPage { layout, server, rows, has_running, next })
}

fn row(job: &MessageJob, budget: &mut TextBudget) -> JobRow {
    JobRow {
        id: job.id,
        kind: kind_words(job.kind),
        state: job.state,
        done: count(job.done),
        total: count(job.total.max(job.done)),
        failed: job.failed,
        created_at: When(job.created_at),
        query: budget.cut(&job.request, QUERY_BYTES_MAX),
    }
}

/// Progress of a job; the page updates itself while it runs.
pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::JobsGet).await?;
    let job = visit.app().find_job(caller.server_id, id).await?.ok_or(Problem::NotFound)?;
    let (_, layout) = visit.server_layout(server, "Job", Section::Messages).await?;
    let is_running = job.state == JobState::Running;
    let note = visit.app().note_on_job(&job).map(|note| format!("{}.", note.replace('`', "")));
    let problem = |problem: JobProblem| (Some(problem.id).filter(|id| *id != 0), Sentence(problem.message));
    page(&JobPage {
        layout,
        server,
        kind: kind_words(job.kind),
        query: job.request,
        is_running,
        has_failed: job.state == JobState::Failed,
        done: count(job.done),
        total: count(job.total.max(job.done)),
        failed: job.failed,
        done_count: job.done,
        total_count: job.total.max(job.done).max(1),
        problems: job.problems.into_iter().map(problem).collect(),
        note,
    })
}

fn kind_words(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Retry => "Try again now",
        JobKind::Release => "Release",
        JobKind::CancelHold => "Cancel held messages",
        JobKind::CancelScheduled => "Cancel scheduled messages",
        JobKind::Erase => "Erase personal data",
    }
}
