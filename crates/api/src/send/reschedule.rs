//! send/reschedule: changes the time of scheduled messages.

use std::borrow::Cow;

use postroad_openapi_macros::request_fields;
use postroad_store::ScheduleChange;

use super::schedule::{self, MessageSelection, ScheduleOut};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// One message by its `id`, or all scheduled messages of a `tag` or `batch_id`, and their new time.
#[request_fields]
#[schema(example = json!({"id": 5_123_456_789_012_345_i64, "send_at": "2026-12-01T09:00:00Z"}))]
pub(crate) struct RescheduleIn {
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
    /// RFC 3339, at most 30 days ahead, before the message's `expires_at`. A past time means now.
    #[schema(format = "date-time")]
    send_at: String,
}

/// Reschedule messages
///
/// A message that waits for its `send_at` gets a new `send_at`. With `id`, the answer is the message, and the errors
/// are those of send/cancel. With `tag` or `batch_id`, the answer counts the messages.
#[crate::documented::path(
    post,
    path = "/api/v1/send/reschedule",
    tag = "send",
    operation_id = "rescheduleMessages",
    request_body = RescheduleIn,
    responses((status = 200, body = crate::documented::Answer<ScheduleOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ScheduleOut>, Failure> {
    let mut findings = Findings::default();
    let (selection, send_at) = read(&call.body, &mut findings)?;
    let send_at = send_at.map(|text| call.app.parse_send_at(&text));
    if let Some(Err(problem)) = &send_at {
        findings.problem(problem.pointer.clone(), problem.message.clone());
    }
    let warnings = findings.reject_problems()?;
    let Some(Ok(send_at)) = send_at else {
        // Not reached: a missing or invalid time is a problem.
        return Err(Failure::validation(Vec::new()));
    };
    schedule::change_selected(&call, selection, ScheduleChange::MoveTo(send_at), warnings).await
}

/// Parses the request; `RescheduleIn` documents its fields. A missing time is recorded as a problem.
pub(crate) fn read<'a>(
    text: &'a [u8],
    findings: &mut Findings,
) -> Result<(MessageSelection, Option<Cow<'a, str>>), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let selection = MessageSelection::read(&mut fields, findings);
    let problems_before = findings.problems.len();
    let send_at = fields.text("send_at", findings);
    if send_at.is_none() && findings.problems.len() == problems_before {
        findings.missing("send_at");
    }
    fields.finish(findings);
    Ok((selection, send_at))
}
