//! send/cancel and send/reschedule: which messages, and the answer.

use postroad_app::LookupError;
use postroad_app::access::Denial;
use postroad_app::send::{ScheduleCounts, ScheduleRefusal};
use postroad_model::{BatchId, MessageId};
use postroad_store::{ScheduleChange, ScheduledOf};
use serde::Serialize;
use utoipa::ToSchema;

use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::{Failure, Reason};
use crate::fields::{Fields, Findings};
use crate::json::Json;
use crate::messages::{EchoedId, MessageOut};

/// Messages that a call names: one by its id, or all scheduled ones of a tag or batch.
#[derive(Debug)]
pub(crate) enum Which {
    One(EchoedId),
    Many(ScheduledOf),
    /// A problem was recorded.
    Unclear,
}

/// The changed message, or how many were changed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ScheduleOut {
    One(Box<MessageOut>),
    Cancelled(CancelledOut),
    Rescheduled(RescheduledOut),
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CancelledOut {
    /// Scheduled messages of the tag or batch.
    matched: usize,
    cancelled: usize,
    /// Messages whose time came meanwhile.
    too_late: usize,
    /// There may be more: repeat the call.
    has_more: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RescheduledOut {
    /// Scheduled messages of the tag or batch.
    matched: usize,
    rescheduled: usize,
    /// Messages whose time came meanwhile, or that expire before their new time.
    unchanged: usize,
    /// There may be more: repeat the call.
    has_more: bool,
}

impl Which {
    /// Takes exactly one of `id`, `tag` and `batch_id`.
    pub(super) fn read(fields: &mut Fields<'_>, findings: &mut Findings) -> Self {
        let given = ["id", "tag", "batch_id"].map(|name| fields.has(name));
        if given.iter().filter(|is_given| **is_given).count() > 1 {
            findings.problem("", "Name the messages by one of `id`, `tag` and `batch_id`, not by several");
        }
        let tag = fields.text("tag", findings);
        let batch_id = read_batch_id(fields, findings);
        match (tag, batch_id) {
            (Some(tag), _) => Self::Many(ScheduledOf::Tag(tag.into_owned())),
            (None, Some(batch_id)) => Self::Many(ScheduledOf::Batch(batch_id)),
            (None, None) if given[0] || (!given[1] && !given[2]) => {
                Self::One(EchoedId::read(fields, findings))
            }
            (None, None) => Self::Unclear,
        }
    }
}

fn read_batch_id(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<BatchId> {
    match fields.take("batch_id", findings)? {
        // A number that no batch has finds nothing.
        Json::Number(number) if !number.is_float() => Some(BatchId(number.as_i64().unwrap_or(0))),
        other => {
            findings.wrong_type("/batch_id", "Integer", other.type_name());
            None
        }
    }
}

/// Does the change and words the answer.
pub(super) async fn change(
    call: &Call,
    which: Which,
    change: ScheduleChange,
    warnings: Vec<String>,
) -> Result<Success<ScheduleOut>, Failure> {
    // Its own messages are never scheduled; those of others are live mail.
    if call.caller.test {
        return Err(Reason::Denied(Denial::TestKey).into());
    }
    let done = match which {
        Which::One(id) => change_one(call, id, change).await,
        Which::Many(of) => {
            let _permit = call.batch_permit().await?;
            let counts = call.app.change_schedules(&call.caller, of, change).await;
            counts.map(|counts| count_out(counts, change)).map_err(Failure::from)
        }
        Which::Unclear => Err(Reason::Internal("a request without a target was let through".into()).into()),
    };
    Success::with_warnings(done, warnings)
}

async fn change_one(call: &Call, id: EchoedId, change: ScheduleChange) -> Result<ScheduleOut, Failure> {
    let found: Result<MessageId, LookupError> = id.possible();
    let message_id = match found {
        Ok(message_id) => message_id,
        Err(error) => return Err(id.failure(error)),
    };
    match call.app.change_schedule(&call.caller, message_id, change).await {
        Ok(message) => {
            let size = call.app.message_size(&message);
            Ok(ScheduleOut::One(Box::new(MessageOut::with_status(&message, size))))
        }
        Err(ScheduleRefusal::NotFound) => Err(id.failure(LookupError::NotFound)),
        Err(ScheduleRefusal::NotScheduled) => Err(Reason::MessageNotScheduled.into()),
        Err(ScheduleRefusal::TooLate) => Err(Reason::TooLateToCancel.into()),
        Err(ScheduleRefusal::Validation(problems)) => Err(Failure::validation(problems)),
        Err(ScheduleRefusal::Store(error)) => Err(error.into()),
    }
}

fn count_out(counts: ScheduleCounts, change: ScheduleChange) -> ScheduleOut {
    let ScheduleCounts { matched, changed, has_more } = counts;
    let left = matched - changed;
    match change {
        ScheduleChange::Cancel => {
            ScheduleOut::Cancelled(CancelledOut { matched, cancelled: changed, too_late: left, has_more })
        }
        ScheduleChange::MoveTo(_) => ScheduleOut::Rescheduled(RescheduledOut {
            matched,
            rescheduled: changed,
            unchanged: left,
            has_more,
        }),
    }
}
