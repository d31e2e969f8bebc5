//! send/batch: sends many messages in one call.

use postroad_app::send::{BatchMode, BatchOutcome, BatchResult, BatchStart, MessageDraft};
use postroad_app::{FieldProblem, Refusal};
use postroad_model::Limits;
use postroad_openapi_macros::request_fields;

use super::batch_out::{BatchOut, BatchResultOut};
use super::message;
use super::prepare::prepare;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::{Failure, Reason};
use crate::fields::{Fields, Findings};
use crate::idempotency;
use crate::json::{Json, Object};

/// Maximum number of fields of `defaults`: each message is compared with all of them.
const DEFAULTS_MAX: usize = 100;

/// Messages to send, and what applies to all of them.
#[request_fields]
#[schema(example = json!({
    "defaults": {"from": "Shop <shop@example.com>", "subject": "Your order", "tag": "order"},
    "messages": [
        {"to": ["ann@example.net"], "plain_body": "Thank you, Ann."},
        {"to": ["bob@example.net"], "plain_body": "Thank you, Bob."}
    ],
    "mode": "independent"
}))]
pub(crate) struct SendBatchIn {
    /// The messages, with the fields of send/message except `idempotency_key`. Fields that a message lacks come from
    /// `defaults`. Up to 5,000 recipients in total; messages beyond them are refused.
    #[schema(min_items = 1, max_items = 500)]
    messages: Vec<super::BatchMessageIn>,
    /// Fields for all messages, up to 100; a message's own fields take precedence.
    #[schema(value_type = Option<Object>)]
    defaults: Option<serde_json::Value>,
    /// `independent` (the default): valid messages are accepted even if others are not; `atomic`: all or none.
    mode: Option<String>,
    /// Alternative to the header Idempotency-Key: one key for the whole batch.
    #[schema(min_length = 1, max_length = 256)]
    idempotency_key: Option<String>,
}

/// Parsed batch; the messages are parsed one by one.
pub(crate) struct BatchDraft<'a> {
    messages: Vec<Json<'a>>,
    defaults: Object<'a>,
    mode: BatchMode,
}

/// Send up to 500 e-mails
///
/// Every message passes the checks of send/message and has its own result. All accepted messages are stored in one
/// transaction; `success` means that they are on stable storage. With `mode: "atomic"` one invalid message makes the
/// call fail with `BatchRejected`, and nothing is accepted. The request may be up to 50 MiB.
#[crate::documented::path(
    post,
    path = "/api/v1/send/batch",
    tag = "send",
    operation_id = "sendBatch",
    request_body = SendBatchIn,
    params(
        ("X-Test-Mode" = Option<String>, Header, description = "`true` (or `1`, `yes`, `on`): validate and record, do not deliver; `false` (or `0`, `no`, `off`): deliver; anything else is refused"),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 256 printable characters; a repetition with the same key within 24 hours gets the first answer"),
    ),
    responses((status = 200, body = crate::documented::Answer<BatchOut>)),
)]
pub(crate) async fn handle(mut call: Call) -> Result<Success<BatchOut>, Failure> {
    let _permit = call.batch_permit().await?;
    let text = call.take_body();
    let (context, draft) = prepare(&call, &text, "send/batch", read)?;
    let mut batch = match call.app.begin_batch(context, draft.mode).await? {
        BatchStart::Replayed(answer) => return Ok(answer.into()),
        BatchStart::New(batch) => batch,
    };
    let BatchDraft { messages, defaults, .. } = draft;
    for (index, json) in messages.into_iter().enumerate() {
        let (message, warnings) = read_message(index, json, &defaults, call.app.limits());
        batch.warn(warnings);
        let bytes = batch.add(message).await?;
        call.grow_memory(text.len() + bytes).await?;
    }
    drop(text);
    match batch.finish().await? {
        BatchOutcome::Done(answer) => Ok(answer.into()),
        BatchOutcome::Rejected { results, warnings } => Err(rejection(results).with_warnings(warnings)),
    }
}

/// Reads the fields of `SendBatchIn`; the messages themselves are read later.
pub(crate) fn read<'a>(fields: &mut Fields<'a>, findings: &mut Findings) -> BatchDraft<'a> {
    let max = Limits::BATCH_MESSAGES_MAX;
    let messages = match fields.take("messages", findings) {
        Some(Json::Array(messages)) => {
            if messages.is_empty() || messages.len() > max {
                findings.problem(
                    "/messages",
                    format!("`messages` must have 1 to {max} entries, not {}", messages.len()),
                );
            }
            messages
        }
        Some(other) => {
            findings.wrong_type("/messages", "Array", other.type_name());
            Vec::new()
        }
        None => {
            findings.missing("messages");
            Vec::new()
        }
    };
    let mut defaults = fields.loose_object("defaults", findings).map(Fields::into_object).unwrap_or_default();
    if defaults.len() > DEFAULTS_MAX {
        findings.problem("/defaults", format!("`defaults` must have at most {DEFAULTS_MAX} fields"));
        defaults.clear();
    }
    let mode = match fields.text("mode", findings).as_deref() {
        None | Some("independent") => BatchMode::Independent,
        Some("atomic") => BatchMode::Atomic,
        Some(_) => {
            findings.problem("/mode", "`mode` must be `independent` or `atomic`");
            BatchMode::Independent
        }
    };
    BatchDraft { messages, defaults, mode }
}

/// Reads one message, with warnings about its unknown fields. Pointers to fields are relative to the message.
fn read_message<'a>(
    index: usize,
    json: Json<'a>,
    defaults: &Object<'a>,
    limits: &Limits,
) -> (Result<MessageDraft<'a>, Refusal>, Vec<String>) {
    let mut findings = Findings::default();
    let type_name = json.type_name();
    let Some(mut fields) = Fields::of_object(String::new(), json, &mut findings) else {
        let message = format!("`messages/{index}` should be a `Object` but is a `{type_name}`");
        return (Err(Refusal::Validation(vec![FieldProblem::new("", message)])), Vec::new());
    };
    fields.add_defaults(defaults);
    let draft = message::read(&mut fields, limits, &mut findings);
    if fields.take(idempotency::FIELD, &mut findings).is_some() {
        let message = "A batch has one idempotency key, beside `messages`; its messages have none";
        findings.problem("/idempotency_key", message);
    }
    fields.finish(&mut findings);
    let warnings = findings.take_warnings();
    let is_valid = findings.problems.is_empty();
    let message = if is_valid { Ok(draft) } else { Err(Refusal::Validation(findings.problems)) };
    (message, warnings)
}

fn rejection(results: Vec<BatchResult>) -> Failure {
    let results: Vec<BatchResultOut> = BatchResultOut::list(results);
    let refused = results.iter().filter(|result| result.is_error()).count();
    match serde_json::value::to_raw_value(&results) {
        Ok(results) => Reason::BatchRejected { refused, results }.into(),
        Err(error) => Reason::Internal(format!("an answer cannot be written: {error}")).into(),
    }
}
