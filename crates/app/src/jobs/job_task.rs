//! Task that works on jobs, every job a step in turn. On failure (store unavailable) a job waits for the next round; a
//! crash repeats at most the last step, which finds its messages changed.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::MessageId;
use postroad_store::{JobKind, JobProblem, JobState, JobStep, MessageJob, SearchItem, StoreError};

use super::create::job_filter;
use super::{MessageAction, erase};
use crate::App;

/// Pause without a new job: other nodes may have left one.
const IDLE_PAUSE: Duration = Duration::from_secs(5);
/// Pause between two steps: other work comes first.
const STEP_PAUSE: Duration = Duration::from_millis(10);
/// Messages of one step.
const STEP_MESSAGES: usize = 200;
/// Time that looking for them may take.
const STEP_TIME_MAX: Duration = Duration::from_millis(200);

/// Running task.
#[derive(Debug)]
pub struct JobTask {
    task: tokio::task::JoinHandle<()>,
}

impl JobTask {
    pub fn start(app: App) -> Self {
        let task = tokio::spawn(async move {
            loop {
                match app.work_on_jobs().await {
                    Ok(()) => {}
                    Err(error) => tracing::warn!(%error, "a job on messages failed; retrying in 5 s"),
                }
                // The timeout is handled like a new job.
                let _ = tokio::time::timeout(IDLE_PAUSE, app.inner.job_created.notified()).await;
            }
        });
        Self { task }
    }

    pub fn stop(self) {
        self.task.abort();
    }
}

impl App {
    /// Gives every open job a step in turn until none is left.
    async fn work_on_jobs(&self) -> Result<(), StoreError> {
        loop {
            let jobs = self.inner.store.list_open_jobs().await?;
            if jobs.is_empty() {
                return Ok(());
            }
            for (server_id, id) in jobs {
                if let Some(job) = self.inner.store.claim_job(server_id, id).await? {
                    let step = self.do_step(&job).await?;
                    let has_erased = job.kind == JobKind::Erase && step.state != JobState::Running;
                    self.inner.store.advance_job(job, step).await?;
                    if has_erased {
                        // The request was in there, too.
                        self.inner.store.truncate_log().await?;
                    }
                    tokio::time::sleep(STEP_PAUSE).await;
                }
            }
        }
    }

    async fn do_step(&self, job: &MessageJob) -> Result<JobStep, StoreError> {
        let action = match job.kind {
            JobKind::Retry => MessageAction::Retry,
            JobKind::Release => MessageAction::Release,
            JobKind::CancelHold => MessageAction::CancelHold,
            JobKind::Erase => MessageAction::Erase,
        };
        let Ok(filter) = job_filter(action, &job.request) else {
            // The query was understood when the job was created: another version of the language.
            let (position, state) = (job.position, JobState::Failed);
            return Ok(JobStep { done: 0, problems: Vec::new(), position, state });
        };
        let page = {
            let _permit = self.inner.long_reads.permit(job.server_id).await;
            let (filter, before) = (Arc::new(filter), Some(job.position));
            self.inner.store.search(job.server_id, &filter, before, STEP_MESSAGES, STEP_TIME_MAX).await?
        };
        let person = if action == MessageAction::Erase { erase::address_of(&job.request) } else { None };
        let is_meant = |item: &&SearchItem| match &person {
            Some(person) => erase::is_to(item, person),
            None => true,
        };
        let ids: Vec<MessageId> = page.items.iter().filter(is_meant).map(|item| item.id).collect();
        let done = ids.len() as u64;
        let mut problems = Vec::new();
        for (id, result) in self.change_messages(job.server_id, action, ids).await? {
            if let Err(failure) = result {
                let code = failure.code().unwrap_or_default().to_owned();
                problems.push(JobProblem { id: id.0, code, message: failure.to_string() });
            }
        }
        let (position, state) = match page.next {
            Some(next) => (next, JobState::Running),
            None => (job.position, JobState::Done),
        };
        if state == JobState::Done
            && let Some(person) = person
        {
            problems.extend(self.erase_person(job.server_id, &person).await?);
        }
        Ok(JobStep { done, problems, position, state })
    }
}
