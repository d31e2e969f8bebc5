//! Tasks that run jobs: one changes messages; the other finishes erasures (`JobPart::Remains`), which takes long.
//! Each round does one step for every server with a job. If the store is unavailable, a job waits until its claim ends;
//! after many failures in a row the job is given up. After a crash only the last step is repeated; some of its messages
//! may be changed already.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{MessageId, ServerId};
use postroad_store::{JobKind, JobPart, JobProblem, JobState, JobStep, MessageJob, SearchItem, StoreError};
use tokio::sync::Notify;

use super::create::job_filter;
use super::{ActionFailure, MessageAction, erase};
use crate::App;

/// Longest pause between two searches for jobs: another node may have left a job.
const IDLE_PAUSE: Duration = Duration::from_secs(5);
/// Pause between two steps, so that other work comes first.
const STEP_PAUSE: Duration = Duration::from_millis(10);
/// Maximum number of messages of one step.
const STEP_MESSAGES_MAX: usize = 200;
/// Time limit for finding the messages of a step.
const STEP_TIME_MAX: Duration = Duration::from_millis(200);
/// Failures in a row after which a job is given up. They are 30 s apart, the time of a claim.
const FAILURES_MAX: usize = 20;
/// Pause before messages that were being sent are tried again.
const REPEAT_PAUSE: Duration = Duration::from_secs(4);

/// Handles of the running tasks.
#[derive(Debug)]
pub struct JobTask {
    tasks: [tokio::task::JoinHandle<()>; 2],
}

impl JobTask {
    pub fn start(app: &App) -> Self {
        let remains_due = Arc::new(Notify::new());
        let worker = |part| Worker {
            app: app.clone(),
            part,
            remains_due: Arc::clone(&remains_due),
            rotation: JobRotation::default(),
            failures: HashMap::new(),
        };
        let (messages, remains) = (worker(JobPart::Messages), worker(JobPart::Remains));
        Self { tasks: [tokio::spawn(messages.run()), tokio::spawn(remains.run())] }
    }

    pub fn stop(self) {
        for task in self.tasks {
            task.abort();
        }
    }
}

/// Works on one part of all jobs.
struct Worker {
    app: App,
    part: JobPart,
    /// Signals that an erasure has reached its last part.
    remains_due: Arc<Notify>,
    rotation: JobRotation,
    /// Failures in a row, by job.
    failures: HashMap<(ServerId, i64), usize>,
}

impl Worker {
    async fn run(mut self) {
        loop {
            if let Err(error) = self.work_on_jobs().await {
                tracing::warn!(%error, "jobs on messages cannot be read or written; retrying in 5 s");
            }
            let wake_up = match self.part {
                JobPart::Messages => &self.app.inner.job_created,
                JobPart::Remains => &*self.remains_due,
            };
            // The timeout is handled like a new job.
            let _ = tokio::time::timeout(IDLE_PAUSE, wake_up.notified()).await;
        }
    }

    /// Does one step for every server, again and again, until no job is left.
    async fn work_on_jobs(&mut self) -> Result<(), StoreError> {
        loop {
            let jobs = self.app.inner.store.list_open_jobs(self.part).await?;
            if jobs.is_empty() {
                return Ok(());
            }
            for (server_id, id) in self.rotation.next(&jobs) {
                if let Some(job) = self.app.inner.store.claim_job(server_id, id).await? {
                    self.advance(job).await?;
                    tokio::time::sleep(STEP_PAUSE).await;
                }
            }
        }
    }

    async fn advance(&mut self, job: MessageJob) -> Result<(), StoreError> {
        let key = (job.server_id, job.id);
        let step = match self.app.do_step(&job).await {
            Ok(step) => {
                self.failures.remove(&key);
                step
            }
            Err(error) => {
                let failures = self.failures.entry(key).or_default();
                *failures += 1;
                tracing::warn!(%error, job = job.id, failures = *failures, "a step of a job failed; retrying in 30 s, unless it failed 20 times in a row");
                if *failures < FAILURES_MAX {
                    return Ok(());
                }
                self.failures.remove(&key);
                failed_step(&job, &error)
            }
        };
        let reaches_remains = step.position == JobPart::REMAINS_AT && job.kind == JobKind::Erase;
        self.app.inner.store.advance_job(job, step).await?;
        if reaches_remains {
            self.remains_due.notify_one();
        }
        Ok(())
    }
}

/// The last step of a job that fails for good. The text of the error is only logged, because it may come from the
/// database.
fn failed_step(job: &MessageJob, error: &StoreError) -> JobStep {
    let cause = match error {
        StoreError::Unavailable(_) => "the store was unavailable",
        _ => "an internal error",
    };
    let remaining = match job.part() {
        JobPart::Messages => "some messages may not have been handled",
        JobPart::Remains => "erased data may be left in the database",
    };
    let message =
        format!("The job was given up after {FAILURES_MAX} failures in a row: {cause}; {remaining}");
    let problem = JobProblem { id: 0, code: "JobGivenUp".to_owned(), message, is_tried_again: false };
    JobStep { problems: vec![problem], ..step_to(job, JobState::Failed) }
}

/// A step without messages. A job that ends forgets a request that names a person.
fn step_to(job: &MessageJob, state: JobState) -> JobStep {
    JobStep {
        done: 0,
        problems: Vec::new(),
        is_repetition: false,
        position: job.position,
        state,
        pause: Duration::ZERO,
        forgets_request: state != JobState::Running && job.request.contains('@'),
    }
}

fn problem_of(id: MessageId, failure: &ActionFailure, is_tried_again: bool) -> JobProblem {
    let code = failure.code().unwrap_or_default().to_owned();
    JobProblem { id: id.0, code, message: failure.to_string(), is_tried_again }
}

/// Order in which the jobs of each server get a step: one after the other.
#[derive(Debug, Default)]
struct JobRotation {
    /// The job of each server that got the last step.
    last: BTreeMap<ServerId, i64>,
}

impl JobRotation {
    /// Chooses the job of each server that gets the server's next step.
    fn next(&mut self, jobs: &[(ServerId, i64)]) -> Vec<(ServerId, i64)> {
        let mut of_servers: BTreeMap<ServerId, Vec<i64>> = BTreeMap::new();
        for (server_id, id) in jobs {
            of_servers.entry(*server_id).or_default().push(*id);
        }
        self.last.retain(|server_id, _| of_servers.contains_key(server_id));
        let mut chosen = Vec::with_capacity(of_servers.len());
        for (server_id, mut ids) in of_servers {
            ids.sort_unstable();
            let last = self.last.get(&server_id).copied().unwrap_or(i64::MIN);
            let next = ids.iter().find(|id| **id > last).or(ids.first());
            if let Some(id) = next.copied() {
                self.last.insert(server_id, id);
                chosen.push((server_id, id));
            }
        }
        chosen
    }
}

impl App {
    async fn do_step(&self, job: &MessageJob) -> Result<JobStep, StoreError> {
        match job.part() {
            JobPart::Messages => self.change_next_messages(job).await,
            JobPart::Remains => self.remove_remains(job).await,
        }
    }

    async fn change_next_messages(&self, job: &MessageJob) -> Result<JobStep, StoreError> {
        let action = match job.kind {
            JobKind::Retry => MessageAction::Retry,
            JobKind::Release => MessageAction::Release,
            JobKind::CancelHold => MessageAction::CancelHold,
            JobKind::CancelScheduled => MessageAction::CancelScheduled,
            JobKind::Erase => MessageAction::Erase,
        };
        let Ok(filter) = job_filter(action, &job.request) else {
            // The query was valid when the job was created, so another version of Postroad created the job.
            return Ok(step_to(job, JobState::Failed));
        };
        // Positions 60 to 1, which no message has, count the rounds left for messages that were being sent.
        if job.position <= JobPart::ROUNDS_LEFT_MAX {
            return self.erase_again(job).await;
        }
        let page = {
            let _permit = self.inner.long_reads.permit_for_jobs().await;
            let (filter, before) = (Arc::new(filter), Some(job.position));
            let store = &self.inner.store;
            store.search_with_late(job.server_id, &filter, before, STEP_MESSAGES_MAX, STEP_TIME_MAX).await?
        };
        let person = erase::person_of(action, &job.request);
        let is_to_person = |item: &&SearchItem| erase::is_to_person(item, person.as_ref());
        let ids: Vec<MessageId> = page.items.iter().filter(is_to_person).map(|item| item.id).collect();
        let done = ids.len() as u64;
        let mut problems = Vec::new();
        for (id, result) in self.change_all(&self.inner.store, job.server_id, action, ids).await? {
            if let Err(failure) = result {
                let is_tried_again =
                    action == MessageAction::Erase && matches!(failure, ActionFailure::InDelivery);
                problems.push(problem_of(id, &failure, is_tried_again));
            }
        }
        let step = JobStep { done, problems, ..step_to(job, JobState::Running) };
        Ok(match page.next {
            Some(next) => JobStep { position: next, ..step },
            None if action == MessageAction::Erase => {
                let has_open_tries =
                    job.problems.iter().chain(&step.problems).any(|problem| problem.is_tried_again);
                let position = if has_open_tries { JobPart::ROUNDS_LEFT_MAX } else { JobPart::REMAINS_AT };
                JobStep { position, ..step }
            }
            None => JobStep { done, problems: step.problems, ..step_to(job, JobState::Done) },
        })
    }

    /// Tries again to erase messages that were being sent. A try may also fail because another message of the same send
    /// is being sent and still needs the text that both messages share.
    async fn erase_again(&self, job: &MessageJob) -> Result<JobStep, StoreError> {
        let again = job.problems.iter().filter(|problem| problem.is_tried_again);
        let ids: Vec<MessageId> = again.map(|problem| MessageId(problem.id)).collect();
        let position = MessageId(job.position.0 - 1);
        let is_last = position == JobPart::REMAINS_AT;
        let mut problems = Vec::new();
        for (id, result) in
            self.change_all(&self.inner.store, job.server_id, MessageAction::Erase, ids).await?
        {
            match result {
                // Retention may have removed the message meanwhile.
                Ok(()) | Err(ActionFailure::NotFound) => {}
                Err(failure) => problems.push(problem_of(id, &failure, !is_last)),
            }
        }
        let (position, pause) = if is_last || problems.is_empty() {
            (JobPart::REMAINS_AT, Duration::ZERO)
        } else {
            (position, REPEAT_PAUSE)
        };
        let step = step_to(job, JobState::Running);
        Ok(JobStep { problems, is_repetition: true, position, pause, ..step })
    }

    /// The first step erases the address wherever it remains, and drops the request. If the job is not about one
    /// address, the first step only erases what webhooks have posted to the inspector meanwhile. The second step
    /// truncates SQLite's write-ahead log, which still contains the erased data, and ends the job.
    async fn remove_remains(&self, job: &MessageJob) -> Result<JobStep, StoreError> {
        let state = if job.request.is_empty() {
            self.inner.store.truncate_log().await?;
            JobState::Done
        } else {
            if let Some(person) = erase::address_of(&job.request) {
                self.erase_person(job.server_id, job.id, &person).await?;
            } else {
                self.inner.store.forget_inspector_requests(job.server_id).await?;
            }
            JobState::Running
        };
        Ok(JobStep { forgets_request: true, ..step_to(job, state) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_gets_one_step_at_a_time_and_its_jobs_take_turns() {
        let (one, two) = (ServerId(1), ServerId(2));
        let jobs = [(one, 10), (one, 11), (one, 12), (two, 20)];
        let mut rotation = JobRotation::default();
        assert_eq!(rotation.next(&jobs), [(one, 10), (two, 20)]);
        assert_eq!(rotation.next(&jobs), [(one, 11), (two, 20)]);
        assert_eq!(rotation.next(&jobs[..3]), [(one, 12)]);
        assert_eq!(rotation.next(&jobs), [(one, 10), (two, 20)]);
        assert_eq!(rotation.next(&[]), []);
    }

    #[test]
    fn a_job_that_cannot_be_done_ends_with_the_reason_but_without_texts_of_the_store() {
        let mut job = MessageJob {
            server_id: ServerId(1),
            id: 7,
            kind: JobKind::Erase,
            request: "to:ann@example.com".to_owned(),
            state: JobState::Running,
            position: JobPart::REMAINS_AT,
            done: 3,
            failed: 0,
            total: 3,
            problems: Vec::new(),
            claimed_until: postroad_model::Timestamp::from_micros(0),
            created_at: postroad_model::Timestamp::from_micros(0),
            updated_at: postroad_model::Timestamp::from_micros(0),
        };
        let step = failed_step(&job, &StoreError::Unavailable("disk I/O error".into()));
        assert_eq!((step.state, step.forgets_request), (JobState::Failed, true));
        assert_eq!(
            step.problems[0].message,
            "The job was given up after 20 failures in a row: the store was unavailable; erased data may be left in the \
             database"
        );
        job.position = MessageId(1_000);
        let step = failed_step(&job, &StoreError::Internal("23505: relation \"jobs\"".into()));
        assert_eq!(
            step.problems[0].message,
            "The job was given up after 20 failures in a row: an internal error; some messages may not have been handled"
        );
    }
}
