//! Starts a job on all messages that a query finds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use postroad_model::{EmailAddress, ServerId};
use postroad_store::{JobKind, JobState, MessageJob, NewJob, SearchFilter, StoreError};

use super::MessageAction;
use super::erase::{self, query_of};
use crate::search::parse_query;
use crate::{App, Caller, FieldProblem};

/// Time limit for counting the messages.
const COUNT_TIME_MAX: Duration = Duration::from_secs(5);
/// Messages counted in one read.
const COUNT_PAGE_MESSAGES: usize = 500;
/// Maximum number of problems of a job that callers see.
const PROBLEMS_SHOWN_MAX: usize = 100;
/// Maximum number of running jobs of a server.
const RUNNING_JOBS_MAX: usize = 10;

/// A started job, or a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedJob {
    /// `None` after a dry run.
    pub id: Option<i64>,
    /// Matching messages that were counted.
    pub matched: u64,
    /// Whether all matching messages were counted.
    pub is_complete: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum JobRefusal {
    #[error("{}", .0.message)]
    Query(FieldProblem),
    #[error("the server has the maximum number of running jobs")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl App {
    /// Starts a job that erases all messages of the server to an address, and the address wherever else the server's
    /// data contains it. A dry run only counts the messages.
    pub async fn start_erasure(
        &self,
        caller: &Caller,
        address: &EmailAddress,
        dry_run: bool,
    ) -> Result<StartedJob, JobRefusal> {
        self.start_job(caller, MessageAction::Erase, &query_of(address), dry_run).await
    }

    /// Counts the messages that match the query and that the action can change. Starts the job, unless it is a dry run.
    /// An erasure needs a condition, because an empty query matches every message.
    pub async fn start_job(
        &self,
        caller: &Caller,
        action: MessageAction,
        query: &str,
        dry_run: bool,
    ) -> Result<StartedJob, JobRefusal> {
        let server_id = caller.server_id;
        if action == MessageAction::Erase && query.trim().is_empty() {
            let message = "`query` should have a condition: an empty one would erase every message";
            return Err(JobRefusal::Query(FieldProblem::new("/query", message)));
        }
        let filter = job_filter(action, query).map_err(JobRefusal::Query)?;
        let person = erase::person_of(action, query);
        let (matched, is_complete) = self.count_messages(caller, filter, person.as_ref()).await?;
        if dry_run {
            return Ok(StartedJob { id: None, matched, is_complete });
        }
        let new = NewJob { server_id, kind: action.job_kind(), request: query.to_owned(), total: matched };
        let store = self.audited_store_for_action(caller, action);
        let job = store.create_job(new, RUNNING_JOBS_MAX).await?.ok_or(JobRefusal::TooMany)?;
        self.inner.job_created.notify_one();
        Ok(StartedJob { id: Some(job.id), matched, is_complete })
    }

    /// A job with its first problems.
    pub async fn find_job(&self, server_id: ServerId, id: i64) -> Result<Option<MessageJob>, StoreError> {
        let mut job = self.inner.store.find_job(server_id, id).await?;
        if let Some(job) = &mut job {
            job.problems.truncate(PROBLEMS_SHOWN_MAX);
        }
        Ok(job)
    }

    /// A page of the server's jobs, newest first, without their problems, and whether there are more.
    pub async fn list_jobs(
        &self,
        server_id: ServerId,
        before: Option<i64>,
        limit: usize,
    ) -> Result<(Vec<MessageJob>, bool), StoreError> {
        let mut jobs = self.inner.store.list_jobs(server_id, before, limit + 1).await?;
        let has_more = jobs.len() > limit;
        jobs.truncate(limit);
        Ok((jobs, has_more))
    }

    /// Note on what a finished erasure keeps; `None` for other jobs.
    pub fn note_on_job(&self, job: &MessageJob) -> Option<&'static str> {
        let is_finished_erasure = job.kind == JobKind::Erase && job.state == JobState::Done;
        let note = if self.inner.store.overwrites_erased() {
            "Data that is not about the erased messages is kept, also where it contains the address: subjects of other mail, \
             templates, longer addresses"
        } else {
            "Data that is not about the erased messages is kept, also where it contains the address: subjects of other mail, \
             templates, longer addresses. PostgreSQL keeps the erased bytes in its files until `VACUUM FULL` and in its log \
             until a checkpoint removes old segments (see search.md); WAL archives and backups keep them as well"
        };
        is_finished_erasure.then_some(note)
    }

    async fn count_messages(
        &self,
        caller: &Caller,
        filter: SearchFilter,
        person: Option<&EmailAddress>,
    ) -> Result<(u64, bool), StoreError> {
        let server_id = caller.server_id;
        let _permit = self.inner.long_reads.permit(caller.account_id).await;
        let (started_at, filter) = (Instant::now(), Arc::new(filter));
        let (mut count, mut before) = (0, None);
        loop {
            let left = COUNT_TIME_MAX.saturating_sub(started_at.elapsed());
            if left.is_zero() {
                return Ok((count, false));
            }
            let page = self
                .inner
                .store
                .search_with_late(server_id, &filter, before, COUNT_PAGE_MESSAGES, left)
                .await?;
            count += page.items.iter().filter(|item| erase::is_to_person(item, person)).count() as u64;
            match page.next {
                Some(next) => before = Some(next),
                None => return Ok((count, true)),
            }
        }
    }
}

/// Filter of a job: matches of the query in a status that the action accepts.
pub(super) fn job_filter(action: MessageAction, query: &str) -> Result<SearchFilter, FieldProblem> {
    let mut filter = match erase::person_of(action, query) {
        Some(person) => erase::filter_of(&person),
        None => parse_query("query", query)?,
    };
    let is_wanted = |status: &postroad_model::Status| {
        filter.statuses.as_ref().is_none_or(|statuses| statuses.contains(status))
    };
    filter.statuses = Some(action.statuses().iter().copied().filter(is_wanted).collect());
    Ok(filter)
}
