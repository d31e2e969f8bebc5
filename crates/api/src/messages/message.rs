//! messages/message: one message with the requested expansions.

use postroad_app::{FoundMessage, view_message};
use postroad_openapi_macros::request_fields;
use postroad_store::Message;

use super::echoed_id::EchoedId;
use super::expansions::{Expansion, Expansions};
use super::message_out::{
    ActivityOut, AttachmentOut, Base64, DetailsOut, Headers, InspectionOut, MessageOut, StatusOut,
};
use crate::endpoint::Call;
use crate::envelope::{Flags, OrNull, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::memory::Share;

/// Message id and expansions.
#[request_fields]
#[schema(example = json!({"id": 5_123_456_789_012_345_i64, "_expansions": ["status", "details"]}))]
pub(crate) struct MessageIn {
    /// Id of the message: the integer, not the `token` or Message-ID.
    id: i64,
    _expansions: Option<ExpansionsIn>,
}

/// `true` for all expansions, or a list of `status`, `details`, `inspection`, `plain_body`, `html_body`,
/// `attachments`, `headers`, `raw_message`, `activity_entries`.
#[request_fields]
#[serde(untagged)]
pub(crate) enum ExpansionsIn {
    All(bool),
    Names(Vec<String>),
}

/// Get a message
///
/// Returns `{id, token}` and the requested expansions. The id of another server's message is answered like an
/// unknown id.
#[crate::documented::path(
    post,
    path = "/api/v1/messages/message",
    tag = "messages",
    operation_id = "getMessage",
    request_body = MessageIn,
    responses((status = 200, body = crate::documented::Answer<MessageOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<MessageOut>, Failure> {
    let mut findings = Findings::default();
    let (id, expansions) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    match find(&call, id, expansions).await {
        Ok((message, memory)) => {
            let flags = Flags { warnings, ..Flags::default() };
            Ok(Success { data: message, flags, memory: memory.into() })
        }
        Err(failure) => Err(failure.with_warnings(warnings)),
    }
}

/// Parses the request; `MessageIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(EchoedId, Expansions), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = EchoedId::read(&mut fields, findings);
    let expansions = Expansions::read(fields.take("_expansions", findings), findings);
    fields.finish(findings);
    Ok((id, expansions))
}

/// Finds the message; also returns the memory reserved for a large answer.
async fn find(
    call: &Call,
    id: EchoedId,
    expansions: Expansions,
) -> Result<(MessageOut, Option<Share>), Failure> {
    let found = match id.message_id() {
        Ok(id) => call.app.find_message(&call.caller, id, expansions.detail()).await,
        Err(not_found) => Err(not_found),
    };
    let FoundMessage { summary, record } = found.map_err(|error| id.failure(error))?;
    let mut out = MessageOut { id: summary.id.0, token: summary.token.0, ..MessageOut::default() };
    let Some(record) = record else { return Ok((out, None)) };
    add_record_parts(&mut out, &record, call.app.message_size(&record), &expansions);
    if expansions.has(Expansion::ActivityEntries) {
        let activity = call.app.list_activity(&call.caller, record.id).await?;
        out.activity_entries = Some(ActivityOut::of(activity));
    }
    if !expansions.needs_bytes() {
        return Ok((out, None));
    }
    // Reserve the memory before loading the bytes.
    let memory = call.reserve_answer(expansions.bytes_to_answer(record.send.size)).await?;
    let is_large = memory.is_some();
    let (app, caller) = (call.app.clone(), call.caller.clone());
    let work = async move {
        match app.read_message_bytes(&caller, &record).await? {
            Some(bytes) => add_content_parts(&mut out, bytes, &expansions),
            None => set_content_parts_to_null(&mut out, &expansions),
        }
        Ok((out, memory))
    };
    if is_large { call.run_blocking(Box::pin(work)).await } else { work.await }
}

/// Fills in the parts that come from database rows.
fn add_record_parts(out: &mut MessageOut, record: &Message, size: u64, expansions: &Expansions) {
    out.status = expansions.has(Expansion::Status).then(|| StatusOut::from(record));
    out.details = expansions.has(Expansion::Details).then(|| DetailsOut::new(record, size));
    out.inspection = expansions.has(Expansion::Inspection).then(InspectionOut::default);
}

/// Fills in the parts that come from the message content.
fn add_content_parts(out: &mut MessageOut, bytes: Vec<u8>, expansions: &Expansions) {
    if expansions.needs_mime() {
        let mut view = view_message(&bytes);
        let attachments = || OrNull(Some(AttachmentOut::list(&mut view)));
        out.attachments = expansions.has(Expansion::Attachments).then(attachments);
        out.plain_body = expansions.has(Expansion::PlainBody).then_some(OrNull(view.plain_body));
        out.html_body = expansions.has(Expansion::HtmlBody).then_some(OrNull(view.html_body));
        out.headers = expansions.has(Expansion::Headers).then_some(OrNull(Some(Headers(view.headers))));
    }
    out.raw_message = expansions.has(Expansion::RawMessage).then_some(OrNull(Some(Base64(bytes))));
}

/// Sets the content parts to null: retention or an erasure has removed the body, or the message is the service's own
/// mail, whose body is never shown.
fn set_content_parts_to_null(out: &mut MessageOut, expansions: &Expansions) {
    out.attachments = expansions.has(Expansion::Attachments).then_some(OrNull(None));
    out.plain_body = expansions.has(Expansion::PlainBody).then_some(OrNull(None));
    out.html_body = expansions.has(Expansion::HtmlBody).then_some(OrNull(None));
    out.headers = expansions.has(Expansion::Headers).then_some(OrNull(None));
    out.raw_message = expansions.has(Expansion::RawMessage).then_some(OrNull(None));
}
