//! messages/timeline: the history of a message.

use crate::documented::ToSchema;
use postroad_app::{Timeline, TimelineItem, TimelineKind};
use postroad_delivery::queue_admin::Reader;
use postroad_openapi_macros::request_fields;
use serde::Serialize;
use serde_json::json;

use super::echoed_id::EchoedId;
use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Estimated memory that a timeline takes until it is written; most of it is transcripts of attempts.
const TIMELINE_BYTES: usize = 512 << 10;

/// Id of the message.
#[request_fields]
#[schema(example = json!({"id": 5_123_456_789_012_345_i64}))]
pub(crate) struct TimelineIn {
    /// Id of the message: the integer, not the `token` or Message-ID.
    id: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimelineOut {
    items: Vec<TimelineItemOut>,
}

/// One item of the timeline.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimelineItemOut {
    #[schema(format = DateTime)]
    at: String,
    /// Name of a `TimelineKind`. The OpenAPI document lists them.
    #[schema(example = "attempt")]
    kind: &'static str,
    /// A sentence.
    text: String,
    #[schema(value_type = Object)]
    data: serde_json::Value,
}

/// Get the timeline of a message
///
/// In time order: acceptance, holds, DNS answers, attempts with their SMTP transcripts, waits, bounces, opens, clicks,
/// and webhook attempts for its events. The last item of a queued message says why it is waiting now.
#[crate::documented::path(
    post,
    path = "/api/v1/messages/timeline",
    tag = "messages",
    operation_id = "getTimeline",
    request_body = TimelineIn,
    responses((status = 200, body = crate::documented::Answer<TimelineOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TimelineOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(TIMELINE_BYTES).await?.into();
    let found = match id.message_id() {
        Ok(id) => call.app.message_timeline(call.caller.server_id, id).await,
        Err(not_found) => Err(not_found),
    };
    let Timeline { message, mut items } = match found {
        Ok(timeline) => timeline,
        Err(error) => return Err(id.failure(error).with_warnings(warnings)),
    };
    if message.status.is_queued()
        && let Some(queue) = &call.queue
    {
        let now = call.app.now();
        let reader = Reader::Server(call.caller.server_id);
        let why = queue.find(message.id, reader, now).await?.map(|waiting| waiting.why);
        items.extend(why.map(|text| TimelineItem {
            at: now,
            kind: TimelineKind::Waiting,
            text,
            data: json!({}),
        }));
    }
    let items = items.into_iter().map(TimelineItemOut::from).collect();
    Ok(Success { data: TimelineOut { items }, flags: Flags { warnings, ..Flags::default() }, memory })
}

/// Parses the request; `TimelineIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<EchoedId, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = EchoedId::read(&mut fields, findings);
    fields.finish(findings);
    Ok(id)
}

impl From<TimelineItem> for TimelineItemOut {
    fn from(item: TimelineItem) -> Self {
        Self { at: item.at.to_rfc3339_millis(), kind: item.kind.as_str(), text: item.text, data: item.data }
    }
}
