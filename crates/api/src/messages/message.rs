//! messages/message: one message, with as much of it as is wanted.

use postroad_app::{FoundMessage, MessageView, view_message};
use utoipa::ToSchema;

use super::expansions::{Expansion, Expansions};
use super::given_id::GivenId;
use super::message_out::{
    ActivityOut, AttachmentOut, Base64, DetailsOut, Headers, InspectionOut, MessageOut, StatusOut,
};
use crate::endpoint::Call;
use crate::envelope::{Answer, OrNull, Success};
use crate::failure::{Failure, Reason};
use crate::fields::{Fields, Findings};
use crate::json;
use crate::openapi::OtherAnswers;

/// Above this size a message is taken apart off the async threads.
const PARSE_INLINE_BYTES_MAX: usize = 256 << 10;

/// Which message, and what of it.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"id": 5_123_456_789_012_345_i64, "_expansions": ["status", "details"]}))]
#[expect(
    dead_code,
    reason = "the shape for the OpenAPI document; a test compares its names with the reader's"
)]
pub(crate) struct MessageIn {
    id: i64,
    _expansions: Option<ExpansionsIn>,
}

/// `true` for all expansions, or a list of `status`, `details`, `inspection`, `plain_body`, `html_body`,
/// `attachments`, `headers`, `raw_message`, `activity_entries`.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the shape for the OpenAPI document")]
pub(crate) enum ExpansionsIn {
    All(bool),
    Names(Vec<String>),
}

/// Get a message
///
/// Answers `{id, token}` and the wanted expansions. An id of another server is an unknown id.
#[utoipa::path(
    post,
    path = "/api/v1/messages/message",
    tag = "messages",
    operation_id = "getMessage",
    request_body = MessageIn,
    responses((status = 200, description = "The call was handled; look at `status`", body = Answer<MessageOut>), OtherAnswers),
    security(("server_api_key" = [])),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<MessageOut>, Failure> {
    let mut findings = Findings::default();
    let (id, expansions) = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    Success::with_warnings(find(&call, id, &expansions).await, warnings)
}

/// The fields of the request; their names are those of `MessageIn`.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(GivenId, Expansions), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = GivenId::read(text, &mut fields, findings);
    let expansions = Expansions::read(fields.take("_expansions", findings), findings);
    fields.finish(findings);
    Ok((id, expansions))
}

async fn find(call: &Call, id: GivenId, expansions: &Expansions) -> Result<MessageOut, Failure> {
    let found = match id.possible() {
        Ok(id) => call.app.find_message(&call.caller, id, expansions.wanted()).await,
        Err(impossible) => Err(impossible),
    };
    expand(found.map_err(|error| id.failure(error))?, expansions).await
}

async fn expand(found: FoundMessage, expansions: &Expansions) -> Result<MessageOut, Failure> {
    let FoundMessage { summary, record, bytes } = found;
    let record = record.as_ref();
    let mut out = MessageOut { id: summary.id.0, token: summary.token.0, ..MessageOut::default() };
    if expansions.has(Expansion::Status) {
        out.status = record.map(StatusOut::from);
    }
    if expansions.has(Expansion::Details) {
        out.details = record.map(DetailsOut::from);
    }
    if expansions.has(Expansion::Inspection) {
        out.inspection = Some(InspectionOut::default());
    }
    if expansions.has(Expansion::ActivityEntries) {
        out.activity_entries = Some(ActivityOut::default());
    }
    let Some(bytes) = bytes else { return Ok(out) };
    let (bytes, view) = if expansions.needs_parts() { take_apart(bytes).await? } else { (bytes, None) };
    if let Some(mut view) = view {
        out.attachments = expansions.has(Expansion::Attachments).then(|| AttachmentOut::list(&mut view));
        out.plain_body = expansions.has(Expansion::PlainBody).then_some(OrNull(view.plain_body));
        out.html_body = expansions.has(Expansion::HtmlBody).then_some(OrNull(view.html_body));
        out.headers = expansions.has(Expansion::Headers).then_some(Headers(view.headers));
    }
    out.raw_message = expansions.has(Expansion::RawMessage).then_some(Base64(bytes));
    Ok(out)
}

async fn take_apart(bytes: Vec<u8>) -> Result<(Vec<u8>, Option<MessageView>), Failure> {
    let is_small = bytes.len() <= PARSE_INLINE_BYTES_MAX;
    let work = move || {
        let view = view_message(&bytes);
        (bytes, Some(view))
    };
    if is_small {
        return Ok(work());
    }
    let parsing = tokio::task::spawn_blocking(work).await;
    parsing.map_err(|error| Reason::Internal(format!("taking a message apart: {error}")).into())
}
