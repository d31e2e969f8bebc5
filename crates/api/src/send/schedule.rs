//! Parameters and answers that send/cancel and send/reschedule share: the selected messages, and how many were changed.

use crate::documented::ToSchema;
use postroad_app::LookupError;
use postroad_app::access::Denial;
use postroad_app::send::{ScheduleCounts, ScheduleRefusal};
use postroad_model::{BatchId, MessageId};
use postroad_store::{ScheduleChange, ScheduledOf};
use serde::Serialize;

use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::{Failure, Reason};
use crate::fields::{Fields, Findings};
use crate::json::Json;
use crate::messages::{EchoedId, MessageOut};
use crate::page::{Pagination, read_cursor, read_limit};

/// Maximum number of messages of a tag or batch that one call changes.
pub(super) const LIMIT_MAX: usize = 10_000;

/// Messages that a call names: one by its id, or scheduled ones of a tag or batch.
#[derive(Debug)]
pub(crate) enum MessageSelection {
    One(EchoedId),
    Many {
        scheduled_of: ScheduledOf,
        after: Option<MessageId>,
        limit: usize,
    },
    /// The field that should name the messages is invalid; a problem was recorded.
    Invalid,
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
    /// Messages of the tag or batch that are scheduled, or due and not tried yet.
    matched: usize,
    cancelled: usize,
    /// Messages that are being sent, or were sent meanwhile.
    too_late: usize,
    /// There may be more: repeat the call with `flags.pagination.next_cursor` as `cursor`.
    has_more: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RescheduledOut {
    /// Messages of the tag or batch that are scheduled, or due and not tried yet; without those that already had this
    /// time.
    matched: usize,
    rescheduled: usize,
    /// Messages that are being sent, or were sent meanwhile, or that expire before their new time.
    unchanged: usize,
    /// There may be more: repeat the call with `flags.pagination.next_cursor` as `cursor`.
    has_more: bool,
}

impl MessageSelection {
    /// Takes exactly one of `id`, `tag` and `batch_id`.
    pub(super) fn read(fields: &mut Fields<'_>, findings: &mut Findings) -> Self {
        let [has_id, has_tag, has_batch_id] = ["id", "tag", "batch_id"].map(|name| fields.has(name));
        if [has_id, has_tag, has_batch_id].into_iter().filter(|has_field| *has_field).count() > 1 {
            findings.problem("", "Name the messages by one of `id`, `tag` and `batch_id`, not by several");
        }
        let tag = fields.text("tag", findings);
        let batch_id = read_batch_id(fields, findings);
        let limit = read_limit(fields, findings, LIMIT_MAX, LIMIT_MAX);
        let after = read_cursor(fields, findings, |text| text.parse().ok().map(MessageId));
        match (tag, batch_id) {
            (Some(tag), _) => Self::Many { scheduled_of: ScheduledOf::Tag(tag.into_owned()), after, limit },
            (None, Some(batch_id)) => Self::Many { scheduled_of: ScheduledOf::Batch(batch_id), after, limit },
            (None, None) if has_id || (!has_tag && !has_batch_id) => {
                Self::One(EchoedId::read(fields, findings))
            }
            (None, None) => Self::Invalid,
        }
    }
}

fn read_batch_id(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<BatchId> {
    match fields.take("batch_id", findings)? {
        // An id beyond 64 bits becomes 0, which no batch has.
        Json::Number(number) if !number.is_float() => Some(BatchId(number.as_i64().unwrap_or(0))),
        other => {
            findings.wrong_type("/batch_id", "Integer", other.type_name());
            None
        }
    }
}

/// Makes the change and builds the answer.
pub(super) async fn change_selected(
    call: &Call,
    selection: MessageSelection,
    change: ScheduleChange,
    warnings: Vec<String>,
) -> Result<Success<ScheduleOut>, Failure> {
    // Messages of a test key are never scheduled, so all scheduled messages are live mail.
    if call.caller.test {
        return Err(Reason::Denied(Denial::TestKey).into());
    }
    match selection {
        MessageSelection::One(id) => Success::with_warnings(change_one(call, id, change).await, warnings),
        MessageSelection::Many { scheduled_of, after, limit } => {
            let _permit = call.schedule_change_permit().await?;
            let counts = call.app.change_schedules(&call.caller, scheduled_of, change, after, limit).await?;
            let next = counts.next.map(|id| id.0.to_string());
            let mut done = Success::with_warnings(Ok(count_out(counts, change)), warnings)?;
            done.flags.pagination = Some(Pagination::new(limit, next));
            Ok(done)
        }
        MessageSelection::Invalid => {
            Err(Reason::Internal("a request that names no messages passed its checks".into()).into())
        }
    }
}

async fn change_one(call: &Call, id: EchoedId, change: ScheduleChange) -> Result<ScheduleOut, Failure> {
    let message_id = match id.message_id() {
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
    let ScheduleCounts { matched, changed, next } = counts;
    let has_more = next.is_some();
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
