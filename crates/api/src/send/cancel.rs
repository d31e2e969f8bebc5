//! send/cancel: stops scheduled messages.

use postroad_openapi_macros::request_fields;
use postroad_store::ScheduleChange;

use super::schedule::{self, MessageSelection, ScheduleOut};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// One message by its `id`, or all scheduled messages of a `tag` or `batch_id`.
#[request_fields]
#[schema(example = json!({"id": 5_123_456_789_012_345_i64}))]
pub(crate) struct CancelIn {
    /// Id of the message, an integer; or give `tag` or `batch_id`.
    id: Option<i64>,
    /// All messages with this tag that can still be changed.
    tag: Option<String>,
    /// `batch_id` in the answer of send/batch.
    batch_id: Option<i64>,
    /// With `tag` or `batch_id`: maximum number of messages that this call changes, up to 10,000, which is also the
    /// default.
    limit: Option<usize>,
    /// With `tag` or `batch_id`: `next_cursor` of the previous call.
    cursor: Option<String>,
}

/// Cancel scheduled messages
///
/// A message that waits for its `send_at` becomes `Cancelled` and is never sent; the event `message.cancelled` is
/// emitted. With `id`, the answer is the message. `MessageNotScheduled`: it has no `send_at`, or is held or cancelled.
/// `TooLateToCancel`: it is being sent, or was sent. With `tag` or `batch_id`, the answer counts the messages.
#[crate::documented::path(
    post,
    path = "/api/v1/send/cancel",
    tag = "send",
    operation_id = "cancelScheduled",
    request_body = CancelIn,
    responses((status = 200, body = crate::documented::Answer<ScheduleOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ScheduleOut>, Failure> {
    let mut findings = Findings::default();
    let selection = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    schedule::change_selected(&call, selection, ScheduleChange::Cancel, warnings).await
}

/// Parses the request; `CancelIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<MessageSelection, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let selection = MessageSelection::read(&mut fields, findings);
    fields.finish(findings);
    Ok(selection)
}
