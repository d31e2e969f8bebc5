//! events/list: the server's events in order, without gaps; can wait for the next one.

use std::time::Duration;

use crate::documented::ToSchema;
use postroad_app::{FeedRequest, FeedStart};
use postroad_events::body::standard_body;
use postroad_model::{EventCursor, EventKind, EventSet, MessageId};
use postroad_openapi_macros::request_fields;
use serde::Serialize;
use serde_json::Value;

use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings, expect_text};
use crate::json::{self, Json};
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, Pagination, decode_cursor, read_limit};

const WAIT_SECS_MAX: f64 = 30.0;
/// Estimated memory that one event takes until it is written.
const EVENT_BYTES: usize = 8 << 10;
/// Maximum number of entries of `types`; more than there are event types.
const TYPES_MAX: usize = 100;

/// Filters and waiting time.
#[request_fields]
#[schema(example = json!({"types": ["message.delivered"], "since_cursor": "latest", "wait_s": 30}))]
pub(crate) struct ListEventsIn {
    /// Event types; all if left out.
    types: Option<Vec<String>>,
    /// Only events of this message.
    message_id: Option<i64>,
    /// `next_cursor` of the previous answer; `latest` to start with new events; the oldest kept event if left
    /// out.
    since_cursor: Option<String>,
    /// Seconds to wait for the first event if there is none, up to 30; 0 if left out.
    wait_s: Option<f64>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventListOut {
    /// Events as webhooks of the format `standard` post them.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Value>,
}

/// List events
///
/// Returns events in stream order. `next_cursor` is always set, and no event is ever added before it. An empty
/// answer with `has_more` means that the call reached its scan limit; continue with the cursor.
#[crate::documented::path(
    post,
    path = "/api/v1/events/list",
    tag = "events",
    operation_id = "listEvents",
    request_body = ListEventsIn,
    responses((status = 200, body = crate::documented::Answer<EventListOut>)),
)]
pub(crate) async fn handle(mut call: Call) -> Result<Success<EventListOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    call.free_request();
    let page = call.app.list_events(call.caller.server_id, request).await?;
    let pagination = Pagination::of_stream(request.limit, &page.next.to_string(), page.has_more);
    let flags = Flags { pagination: Some(pagination), warnings, ..Flags::default() };
    let memory = call.reserve_answer(page.events.len() * EVENT_BYTES).await?.into();
    let items = page.events.iter().map(standard_body).collect();
    Ok(Success { data: EventListOut { items }, flags, memory })
}

/// Parses the request; `ListEventsIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<FeedRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let request = FeedRequest {
        kinds: read_types(&mut fields, findings),
        message_id: read_message_id(&mut fields, findings),
        start: read_start(&mut fields, findings),
        wait: read_wait(&mut fields, findings),
        limit: read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX),
    };
    fields.finish(findings);
    Ok(request)
}

fn read_types(fields: &mut Fields<'_>, findings: &mut Findings) -> EventSet {
    let Some(names) = fields.array("types", TYPES_MAX, findings) else { return EventSet::ALL };
    if names.len() > TYPES_MAX {
        findings.problem("/types", format!("`types` may name at most {TYPES_MAX} events"));
        return EventSet::ALL;
    }
    let mut kinds = Vec::new();
    for (pointer, json) in names {
        let Some(name) = expect_text(&pointer, json, findings) else { continue };
        if let Some(kind) = EventKind::parse(&name) {
            kinds.push(kind);
        } else {
            let field = pointer.trim_start_matches('/');
            let message = format!("`{field}` should be the name of an event, such as message.delivered");
            findings.problem(&pointer, message);
        }
    }
    if kinds.is_empty() { EventSet::ALL } else { kinds.into_iter().collect() }
}

fn read_message_id(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<MessageId> {
    match fields.take("message_id", findings)? {
        // An id beyond 64 bits becomes -1, which no message has.
        Json::Number(number) if !number.is_float() => Some(MessageId(number.as_i64().unwrap_or(-1))),
        other => {
            findings.wrong_type("/message_id", "Integer", other.type_name());
            None
        }
    }
}

fn read_start(fields: &mut Fields<'_>, findings: &mut Findings) -> FeedStart {
    let Some(text) = fields.text("since_cursor", findings) else { return FeedStart::Oldest };
    if text == "latest" {
        return FeedStart::Latest;
    }
    let cursor = decode_cursor(&text).and_then(|text| EventCursor::parse(&text));
    cursor.map_or_else(
        || {
            let message = "`since_cursor` should be the `next_cursor` of an earlier answer, or `latest`";
            findings.problem("/since_cursor", message);
            FeedStart::Oldest
        },
        FeedStart::After,
    )
}

fn read_wait(fields: &mut Fields<'_>, findings: &mut Findings) -> Duration {
    match fields.take("wait_s", findings) {
        None => Duration::ZERO,
        Some(Json::Number(number)) => {
            let seconds = Some(number.as_f64()).filter(|seconds| (0.0..=WAIT_SECS_MAX).contains(seconds));
            if seconds.is_none() {
                findings.problem("/wait_s", "`wait_s` should be from 0 to 30");
            }
            Duration::from_secs_f64(seconds.unwrap_or_default())
        }
        Some(other) => {
            findings.wrong_type("/wait_s", "Float", other.type_name());
            Duration::ZERO
        }
    }
}
