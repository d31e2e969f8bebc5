//! webhooks/replay: posts one event, or all events of a time range, to a webhook again.

use crate::documented::ToSchema;
use postroad_app::ReplayRequest;
use postroad_model::{EventId, Timestamp, WebhookAttemptId, WebhookId};
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::shared_params::{read_event_id, read_id, read_loose_integer};
use crate::endpoint::Call;
use crate::envelope::{AnswerMemory, Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{Pagination, read_cursor};

/// Maximum number of events that one call queues; the next call continues with the cursor.
const EVENTS_MAX: usize = 50_000;

/// Events to post again: `event_id`, or `attempt_id`, or `since` with or without `until`.
#[request_fields]
#[schema(example = json!({"id": 7, "since": "2026-11-15T00:00:00Z", "until": "2026-11-15T06:00:00Z"}))]
pub(crate) struct ReplayWebhookIn {
    /// Id of the webhook.
    id: i64,
    /// `id` of an event, such as evt_123.
    event_id: Option<String>,
    /// The event of one of the webhook's attempts.
    attempt_id: Option<i64>,
    /// Events that happened at this time or later (RFC 3339).
    since: Option<String>,
    /// Events that happened before this time (RFC 3339); now if left out.
    until: Option<String>,
    /// `next_cursor` of the previous call with the same range.
    cursor: Option<String>,
}

/// Number of events to post again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplayedOut {
    /// Events added to the webhook's queue; events it does not subscribe to are left out.
    events: u64,
}

/// Replay events
///
/// Posts the events as soon as possible, with their original bytes and ids.
#[crate::documented::path(
    post,
    path = "/api/v1/webhooks/replay",
    tag = "webhooks",
    operation_id = "replayWebhook",
    request_body = ReplayWebhookIn,
    responses((status = 200, body = crate::documented::Answer<ReplayedOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ReplayedOut>, Failure> {
    let mut findings = Findings::default();
    let (id, request) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let replayed = call.app.replay_webhook(&call.caller, id, request).await?;
    let next = replayed.continue_after.map(|event| event.0.to_string());
    let pagination = next.map(|next| Pagination::new(EVENTS_MAX, Some(next)));
    let flags = Flags { pagination, warnings, ..Flags::default() };
    Ok(Success { data: ReplayedOut { events: replayed.events }, flags, memory: AnswerMemory::Small })
}

/// Parses the request; `ReplayWebhookIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(WebhookId, ReplayRequest), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let fields_given =
        ["event_id", "attempt_id", "since"].into_iter().filter(|name| fields.has(name)).count();
    let id = read_id(&mut fields, findings);
    let event = read_event_id(&mut fields, findings);
    let attempt = read_loose_integer(&mut fields, "attempt_id", findings);
    let since = fields.time("since", findings);
    let until = fields.time("until", findings);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(EventId));
    fields.finish(findings);
    if fields_given != 1 {
        findings.problem(
            "",
            "Give one of `event_id`, `attempt_id` and `since`, which select the events to post again",
        );
    }
    let request = match (event, attempt, since) {
        (Some(event), _, _) => ReplayRequest::Event(event),
        (_, Some(attempt), _) => ReplayRequest::Attempt(WebhookAttemptId(attempt)),
        (_, _, since) => ReplayRequest::Between {
            since: since.unwrap_or(Timestamp::from_micros(0)),
            until: until.unwrap_or(UNTIL_DEFAULT),
            after,
        },
    };
    Ok((id, request))
}

/// The end of the year 9999, so that the range includes all events so far.
const UNTIL_DEFAULT: Timestamp = Timestamp::from_micros(253_402_300_799_000_000);
