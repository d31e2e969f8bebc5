//! Records of jobs.

use std::time::Duration;

use postroad_model::{MessageId, ServerId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::sql::Row;

/// Maximum number of final problems stored with a job; further ones are only counted.
pub(super) const PROBLEMS_MAX: usize = 100;
/// Maximum number of problems of messages that the job tries again, stored in addition to final problems.
const TRIED_AGAIN_PROBLEMS_MAX: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    Retry,
    Release,
    CancelHold,
    CancelScheduled,
    Erase,
}

impl JobKind {
    const ALL: [Self; 5] = [Self::Retry, Self::Release, Self::CancelHold, Self::CancelScheduled, Self::Erase];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Release => "release",
            Self::CancelHold => "cancel_hold",
            Self::CancelScheduled => "cancel_scheduled",
            Self::Erase => "erase",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Parts of a job, which separate tasks process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPart {
    /// Changes messages.
    Messages,
    /// The end of an erasure, after its messages: erases the address in other tables and in unused parts of the files.
    /// Slow.
    Remains,
}

impl JobPart {
    /// Position of an erasure whose messages are done.
    pub const REMAINS_AT: MessageId = MessageId(0);
    /// Positions from this one down to 1 are not ids of messages: they count the remaining rounds in which the job
    /// tries messages again that were being sent.
    pub const ROUNDS_LEFT_MAX: MessageId = MessageId(60);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    Running,
    Done,
    Failed,
}

impl JobState {
    const ALL: [Self; 3] = [Self::Running, Self::Done, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A message that the job could not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProblem {
    pub id: i64,
    pub code: String,
    pub message: String,
    /// Whether the job tries the message again. The field is stored under its former name, `is_repeated`.
    #[serde(rename = "is_repeated", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_tried_again: bool,
}

#[derive(Debug, Clone)]
pub struct NewJob {
    pub server_id: ServerId,
    pub kind: JobKind,
    /// The query that selects the messages; only the caller interprets it.
    pub request: String,
    pub total: u64,
}

#[derive(Debug, Clone)]
pub struct MessageJob {
    pub server_id: ServerId,
    pub id: i64,
    pub kind: JobKind,
    pub request: String,
    pub state: JobState,
    /// The job continues with messages before this one. The lowest values have other meanings (`JobPart`).
    pub position: MessageId,
    pub done: u64,
    /// Messages among the done ones that could not be changed.
    pub failed: u64,
    pub total: u64,
    /// Problems of the first failed messages, and of messages to be tried again.
    pub problems: Vec<JobProblem>,
    /// No node claims the job before this time: the end of its claim or, after a step, the end of its pause.
    pub claimed_until: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Result of one step of a job.
#[derive(Debug)]
pub struct JobStep {
    pub done: u64,
    pub problems: Vec<JobProblem>,
    /// Whether the step tried messages again; `problems` then replaces their earlier problems.
    pub is_repetition: bool,
    /// Position at which the job continues.
    pub position: MessageId,
    pub state: JobState,
    /// How long the job waits before it continues.
    pub pause: Duration,
    /// Whether the job's request is removed: it is no longer needed and may name a person.
    pub forgets_request: bool,
}

impl MessageJob {
    pub fn part(&self) -> JobPart {
        let is_at_end = self.kind == JobKind::Erase && self.position == JobPart::REMAINS_AT;
        if is_at_end { JobPart::Remains } else { JobPart::Messages }
    }

    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            server_id: ServerId(row.int(0)?),
            id: row.int(1)?,
            kind: row.parsed(2, JobKind::parse)?,
            request: row.text(3)?,
            state: row.parsed(4, JobState::parse)?,
            position: MessageId(row.int(5)?),
            done: row.int(6)? as u64,
            failed: row.int(7)? as u64,
            total: row.int(8)? as u64,
            problems: row.json(9)?,
            claimed_until: row.time(10)?,
            created_at: row.time(11)?,
            updated_at: row.time(12)?,
        })
    }

    /// The job after a step.
    pub(super) fn after(mut self, step: JobStep) -> Self {
        self.done += step.done;
        if step.is_repetition {
            let before = self.problems.len();
            self.problems.retain(|problem| !problem.is_tried_again);
            self.failed = self.failed.saturating_sub((before - self.problems.len()) as u64);
        }
        self.failed += step.problems.len() as u64;
        for problem in step.problems {
            let max = if problem.is_tried_again { TRIED_AGAIN_PROBLEMS_MAX } else { PROBLEMS_MAX };
            let of_same_kind =
                self.problems.iter().filter(|other| other.is_tried_again == problem.is_tried_again);
            if of_same_kind.count() < max {
                self.problems.push(problem);
            }
        }
        self.total = self.total.max(self.done);
        (self.position, self.state) = (step.position, step.state);
        if step.forgets_request {
            self.request.clear();
        }
        self
    }
}
