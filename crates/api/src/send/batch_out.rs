//! Answer of send/batch: one result per message, in the order of the request.

use crate::documented::ToSchema;
use postroad_app::send::{AcceptedMessage, BatchAnswer, BatchResult};
use serde::Serialize;
use serde_json::value::RawValue;

use super::answer::as_map;
use crate::envelope::{AnswerMemory, ErrorOut, Flags, Success};
use crate::failure::Failure;
use crate::rate_limit::{RateLimit, add_warnings};

/// Batch whose accepted messages are on stable storage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchOut {
    /// Names the whole batch in send/cancel and send/reschedule.
    #[schema(example = 5_123_456_789_012_345_i64)]
    batch_id: i64,
    /// Number of messages that were accepted.
    accepted: usize,
    /// Number of messages that were refused.
    rejected: usize,
    /// One result per message, in order.
    results: Vec<BatchResultOut>,
}

/// Result of one message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum BatchResultOut {
    Accepted(AcceptedOut),
    Error(RefusedOut),
    NotSent(NotSentOut),
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedOut {
    index: usize,
    #[schema(example = "accepted", pattern = "^accepted$")]
    status: &'static str,
    /// Message-ID header without angle brackets.
    message_id: String,
    /// One message per recipient, by the bare address as sent.
    #[serde(serialize_with = "as_map")]
    #[schema(value_type = std::collections::BTreeMap<String, super::answer::MessageRefOut>)]
    messages: Vec<AcceptedMessage>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefusedOut {
    index: usize,
    #[schema(example = "error", pattern = "^error$")]
    status: &'static str,
    /// The error that send/message would return.
    #[schema(value_type = ErrorOut<'static>)]
    error: Box<RawValue>,
}

/// Valid message of a rejected batch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotSentOut {
    index: usize,
    #[schema(example = "not_sent", pattern = "^not_sent$")]
    status: &'static str,
}

impl BatchResultOut {
    pub(super) fn list(results: Vec<BatchResult>) -> Vec<Self> {
        results.into_iter().enumerate().map(|(index, result)| Self::of(index, result)).collect()
    }

    pub(super) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    fn of(index: usize, result: BatchResult) -> Self {
        match result {
            BatchResult::Accepted { message_id, messages } => {
                Self::Accepted(AcceptedOut { index, status: "accepted", message_id, messages })
            }
            BatchResult::Refused(refusal) => {
                let failure = Failure::from(refusal);
                let error = serde_json::value::to_raw_value(&ErrorOut::of(&failure));
                let error = error.expect("an error can be written as JSON");
                Self::Error(RefusedOut { index, status: "error", error })
            }
            BatchResult::NotSent => Self::NotSent(NotSentOut { index, status: "not_sent" }),
        }
    }
}

impl From<BatchAnswer> for Success<BatchOut> {
    fn from(mut answer: BatchAnswer) -> Self {
        add_warnings(&mut answer.warnings, &answer.limits);
        let results = BatchResultOut::list(answer.results);
        let rejected = results.iter().filter(|result| result.is_error()).count();
        let flags = Flags {
            test_mode: answer.test_mode,
            idempotent_replay: answer.replayed,
            warnings: answer.warnings,
            rate_limit: RateLimit::tightest(&answer.limits),
            ..Flags::default()
        };
        let accepted = results.len() - rejected;
        let data = BatchOut { batch_id: answer.batch_id.0, accepted, rejected, results };
        // The messages are stored: the sender must learn that.
        Self { data, flags, memory: AnswerMemory::Exempt }
    }
}
