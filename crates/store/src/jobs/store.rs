//! Creates, finds, lists, claims, advances and removes jobs.

use std::time::Duration;

use postroad_model::{MessageId, ServerId, Timestamp};

use super::job::{JobPart, JobState, JobStep, MessageJob, NewJob};
use crate::audit::append;
use crate::retention::RemovalProgress;
use crate::sql::{Row, to_json};
use crate::{ChangeDescription, Result, Store};

/// A claimed job that has recorded no step for this long may be claimed by another node.
const CLAIM_DURATION: Duration = Duration::from_secs(30);
/// Maximum number of running jobs listed at once.
const LISTED_JOBS_MAX: i64 = 1_000;
/// Maximum number of ended jobs removed in one transaction.
const JOBS_PER_TRANSACTION: i64 = 500;

macro_rules! columns {
    () => {
        columns!("problems")
    };
    ($problems:literal) => {
        concat!(
            "server_id, id, kind, request, state, position, done, failed, total, ",
            $problems,
            ", claimed_until, created_at, updated_at"
        )
    };
}

impl Store {
    /// Starts a job on the existing messages. `None` if the server already has `running_max` running jobs.
    pub async fn create_job(&self, new: NewJob, running_max: usize) -> Result<Option<MessageJob>> {
        let (audit, now) = (self.audit.clone(), self.clock.now());
        self.write_with_ids(move |sql, ids| {
            Box::pin(async move {
                // Without the lock, two concurrent calls could both count the jobs before either has added its own.
                // SQLite has one writer.
                if !sql.is_sqlite() {
                    let lock = "SELECT id FROM servers WHERE id = $1 FOR NO KEY UPDATE";
                    sql.query_opt(lock, &[new.server_id.0.into()]).await?;
                }
                let text = "SELECT count(*) FROM jobs WHERE server_id = $1 AND state = 'running'";
                let running = sql.query_opt(text, &[new.server_id.0.into()]).await?;
                if running.map_or(Ok(0), |row| row.int(0))? >= running_max as i64 {
                    return Ok(None);
                }
                let id = ids.next();
                let job = MessageJob {
                    server_id: new.server_id,
                    id,
                    kind: new.kind,
                    request: new.request,
                    state: JobState::Running,
                    position: MessageId(id),
                    done: 0,
                    failed: 0,
                    total: new.total,
                    problems: Vec::new(),
                    claimed_until: Timestamp::from_micros(0),
                    created_at: now,
                    updated_at: now,
                };
                let text = concat!(
                    "INSERT INTO jobs (",
                    columns!(),
                    ") VALUES ($1, $2, $3, $4, 'running', $2, 0, 0, $5, '[]', 0, $6, $6)"
                );
                let params = [
                    job.server_id.0.into(),
                    job.id.into(),
                    job.kind.as_str().into(),
                    job.request.as_str().into(),
                    (job.total as i64).into(),
                    now.into(),
                ];
                sql.execute(text, &params).await?;
                if let Some(audit) = audit {
                    let begun = [("job".to_owned(), job.id.into()), ("matched".to_owned(), job.total.into())];
                    append::record_described(sql, &audit, ChangeDescription::from_iter(begun), now).await?;
                }
                Ok(Some(job))
            })
        })
        .await
    }

    pub async fn find_job(&self, server_id: ServerId, id: i64) -> Result<Option<MessageJob>> {
        let text = concat!("SELECT ", columns!(), " FROM jobs WHERE server_id = $1 AND id = $2");
        self.fetch_opt(text, vec![server_id.0.into(), id.into()], MessageJob::read).await
    }

    /// Jobs of a server before `before`, newest first, without their problems: a job may have a thousand.
    pub async fn list_jobs(
        &self,
        server_id: ServerId,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<MessageJob>> {
        let text = concat!(
            "SELECT ",
            columns!("'[]'"),
            " FROM jobs WHERE server_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
        );
        let params = vec![server_id.0.into(), before.unwrap_or(i64::MAX).into(), (limit as i64).into()];
        self.fetch_all(text, params, MessageJob::read).await
    }

    /// Running jobs in this part that are neither claimed by a node nor in a pause, oldest first.
    pub async fn list_open_jobs(&self, part: JobPart) -> Result<Vec<(ServerId, i64)>> {
        let text = match part {
            JobPart::Messages => {
                "SELECT server_id, id FROM jobs WHERE state = 'running' AND claimed_until <= $1
                     AND (kind <> 'erase' OR position <> 0) ORDER BY id LIMIT $2"
            }
            JobPart::Remains => {
                "SELECT server_id, id FROM jobs WHERE state = 'running' AND claimed_until <= $1
                     AND kind = 'erase' AND position = 0 ORDER BY id LIMIT $2"
            }
        };
        let read = |row: &Row| Ok((ServerId(row.int(0)?), row.int(1)?));
        self.fetch_all(text, vec![self.clock.now().into(), LISTED_JOBS_MAX.into()], read).await
    }

    /// Claims a running job for this node. `None` if another node has it, or it has ended.
    pub async fn claim_job(&self, server_id: ServerId, id: i64) -> Result<Option<MessageJob>> {
        let now = self.clock.now();
        let text = "UPDATE jobs SET claimed_until = $3
                    WHERE server_id = $1 AND id = $2 AND state = 'running' AND claimed_until <= $4";
        let until = now.plus(CLAIM_DURATION);
        let params = vec![server_id.0.into(), id.into(), until.into(), now.into()];
        if self.execute(text, params).await? == 0 {
            return Ok(None);
        }
        let job = self.find_job(server_id, id).await?;
        Ok(job.filter(|job| job.claimed_until == until))
    }

    /// Records a step and releases the job, which can be claimed after the step's pause. `false` if another node has
    /// taken the job over.
    pub async fn advance_job(&self, job: MessageJob, step: JobStep) -> Result<bool> {
        let now = self.clock.now();
        let claimed_until = job.claimed_until;
        let next_at = if step.pause.is_zero() { Timestamp::from_micros(0) } else { now.plus(step.pause) };
        let job = job.after(step);
        let text =
            "UPDATE jobs SET state = $4, position = $5, done = $6, failed = $7, total = $8, problems = $9,
                        updated_at = $10, claimed_until = $12, request = $11
                    WHERE server_id = $1 AND id = $2 AND claimed_until = $3";
        let params = vec![
            job.server_id.0.into(),
            job.id.into(),
            claimed_until.into(),
            job.state.as_str().into(),
            job.position.0.into(),
            (job.done as i64).into(),
            (job.failed as i64).into(),
            (job.total as i64).into(),
            to_json(&job.problems).into(),
            now.into(),
            job.request.as_str().into(),
            next_at.into(),
        ];
        self.write(move |sql| {
            Box::pin(async move {
                // The old request must not stay in SQLite's file.
                Ok(sql.with_secure_delete(sql.execute(text, &params)).await? > 0)
            })
        })
        .await
    }

    /// Removes jobs that ended before this time, some at a time.
    pub async fn remove_old_jobs(&self, before: Timestamp) -> Result<RemovalProgress> {
        let text = "DELETE FROM jobs WHERE state <> 'running' AND (server_id, id) IN
                        (SELECT server_id, id FROM jobs WHERE updated_at < $1 AND state <> 'running' LIMIT $2)";
        let rows = self.execute(text, vec![before.into(), JOBS_PER_TRANSACTION.into()]).await?;
        Ok(RemovalProgress { rows, has_more: rows == JOBS_PER_TRANSACTION as u64 })
    }
}
