//! messages/erase: removes personal data from messages.

use std::borrow::Cow;

use postroad_app::MessageAction;
use postroad_model::EmailAddress;
use postroad_openapi_macros::request_fields;

use super::actions::{self, ActionRequest, ChangedMessagesOut};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// One of `address`, `query`, `ids` and `id`.
#[request_fields]
#[schema(example = json!({"address": "ann@example.com"}))]
pub(crate) struct EraseMessagesIn {
    /// All messages to this address, and the address itself: its suppression becomes a hash. Runs as a job in the
    /// background.
    address: Option<String>,
    /// All messages that messages/search finds with this `q`, as a job; not empty. `to:ADDRESS` alone is equivalent to `address`.
    query: Option<String>,
    /// Up to 1,000 messages, each with its own result.
    ids: Option<Vec<i64>>,
    /// Id of one message, an integer.
    id: Option<i64>,
    /// With `address` or `query`: only count the messages.
    dry_run: Option<bool>,
}

/// Erase personal data
///
/// Removes text, subject, metadata, recipient, transcripts and returned mail of messages, and personal data in their
/// events. Ids, statuses and counters stay. Waiting messages are cancelled first. Needs the scope `full`.
#[crate::documented::path(
    post,
    path = "/api/v1/messages/erase",
    tag = "messages",
    operation_id = "eraseMessages",
    request_body = EraseMessagesIn,
    responses((status = 200, body = crate::documented::Answer<ChangedMessagesOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ChangedMessagesOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    match request {
        EraseRequest::Address { address, dry_run } => {
            let started = call.app.start_erasure(&call.caller, &address, dry_run).await;
            Success::with_warnings(actions::job_out(started), warnings)
        }
        EraseRequest::Messages(request) => {
            actions::apply(call, MessageAction::Erase, request, warnings).await
        }
    }
}

/// Parsed request.
#[derive(Debug)]
pub(crate) enum EraseRequest {
    Address { address: EmailAddress, dry_run: bool },
    Messages(ActionRequest),
}

/// Parses the request; `EraseMessagesIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<EraseRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let Some(address) = fields.text("address", findings).map(Cow::into_owned) else {
        return Ok(EraseRequest::Messages(actions::read_fields(fields, findings)));
    };
    let dry_run = fields.flag("dry_run", findings).unwrap_or(false);
    if ["id", "ids", "query"].into_iter().any(|name| fields.has(name)) {
        findings.problem("", "Give one of `address`, `query`, `ids` and `id`");
    }
    fields.finish(findings);
    match EmailAddress::parse(&address) {
        Ok(address) => Ok(EraseRequest::Address { address, dry_run }),
        Err(error) => {
            findings.problem("/address", format!("`address` is not an email address: {error}"));
            // A placeholder: the recorded problem makes the caller refuse the request.
            Ok(EraseRequest::Messages(ActionRequest::Many(Vec::new())))
        }
    }
}
