//! Requests and answers that messages/retry, messages/release, messages/cancel_hold and messages/erase share: one
//! message, a list, or all messages that a query finds.

use crate::documented::ToSchema;
use postroad_app::{ActionFailure, FieldProblem, JobRefusal, MessageAction, StartedJob};
use postroad_model::MessageId;
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::echoed_id::EchoedId;
use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::{Failure, Reason};
use crate::fields::{Fields, Findings};
use crate::json::{self, Json};

const IDS_MAX: usize = 1_000;
/// Estimated memory that one result takes until it is written.
const RESULT_BYTES: usize = 512;

/// One of `id`, `ids` and `query`.
#[request_fields]
#[schema(example = json!({"query": "status:held to:@example.com", "dry_run": true}))]
pub(crate) struct ChangeMessagesIn {
    /// Id of one message, an integer.
    id: Option<i64>,
    /// Up to 1,000 messages, each with its own result.
    ids: Option<Vec<i64>>,
    /// All messages that messages/search finds with this `q`, as a job in the background.
    query: Option<String>,
    /// With `query`: only count the messages.
    dry_run: Option<bool>,
}

/// Results of `id` or `ids`, or the job of `query`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ChangedMessagesOut {
    Results(ResultsOut),
    Job(StartedJobOut),
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultsOut {
    /// One result per message, in the order of `ids`.
    results: Vec<ResultOut>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultOut {
    id: i64,
    /// `done` or `error`
    #[schema(example = "done")]
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ResultErrorOut>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultErrorOut {
    #[schema(example = "MessageNotHeld")]
    code: &'static str,
    message: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StartedJobOut {
    /// For jobs/get; null after a dry run.
    job_id: Option<i64>,
    /// Messages that match.
    matched: u64,
    /// False if there are so many that not all were counted.
    matched_all: bool,
}

/// Parsed request.
#[derive(Debug)]
pub(crate) enum ActionRequest {
    One(EchoedId),
    Many(Vec<MessageId>),
    Query { query: String, dry_run: bool },
}

/// Reads the request and makes the change.
pub(super) async fn read_and_apply(
    call: Call,
    action: MessageAction,
) -> Result<Success<ChangedMessagesOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    apply(call, action, request, warnings).await
}

/// Makes the requested change; starts a job for a query.
pub(super) async fn apply(
    call: Call,
    action: MessageAction,
    request: ActionRequest,
    warnings: Vec<String>,
) -> Result<Success<ChangedMessagesOut>, Failure> {
    match request {
        ActionRequest::One(id) => {
            let changed = match id.message_id() {
                Ok(id) => call.app.change_message(&call.caller, action, id).await.map(|()| id),
                Err(_) => Err(ActionFailure::NotFound),
            };
            let one = changed.map(|id| ChangedMessagesOut::results(vec![(id, Ok(()))]));
            Success::with_warnings(one.map_err(|failure| failure_of(id, failure)), warnings)
        }
        ActionRequest::Many(ids) => {
            let memory = call.reserve_answer(ids.len() * RESULT_BYTES).await?.into();
            let data =
                ChangedMessagesOut::results(call.app.change_messages(&call.caller, action, ids).await?);
            Ok(Success { data, flags: Flags { warnings, ..Flags::default() }, memory })
        }
        ActionRequest::Query { query, dry_run } => {
            let started = call.app.start_job(&call.caller, action, &query, dry_run).await;
            Success::with_warnings(job_out(started), warnings)
        }
    }
}

pub(super) fn job_out(started: Result<StartedJob, JobRefusal>) -> Result<ChangedMessagesOut, Failure> {
    let StartedJob { id, matched, is_complete } = started?;
    Ok(ChangedMessagesOut::Job(StartedJobOut { job_id: id, matched, matched_all: is_complete }))
}

impl ChangedMessagesOut {
    fn results(changed: Vec<(MessageId, Result<(), ActionFailure>)>) -> Self {
        Self::Results(ResultsOut { results: changed.into_iter().map(ResultOut::from).collect() })
    }
}

/// Parses the request; `ChangeMessagesIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<ActionRequest, Failure> {
    Ok(read_fields(Fields::of_request(json::parse_object(text)?), findings))
}

pub(super) fn read_fields(mut fields: Fields<'_>, findings: &mut Findings) -> ActionRequest {
    let fields_given = ["id", "ids", "query"].into_iter().filter(|name| fields.has(name)).count();
    let many = read_ids(&mut fields, findings);
    let query = fields.text("query", findings).map(std::borrow::Cow::into_owned);
    let dry_run = fields.flag("dry_run", findings);
    let request = match (many, query) {
        (Some(ids), _) => ActionRequest::Many(ids),
        (None, Some(query)) => ActionRequest::Query { query, dry_run: dry_run.unwrap_or(false) },
        (None, None) => ActionRequest::One(EchoedId::read(&mut fields, findings)),
    };
    if fields_given > 1 {
        findings.problem("", "Give one of `id`, `ids` and `query`");
    }
    if dry_run.is_some() && !matches!(request, ActionRequest::Query { .. }) {
        findings.problem("/dry_run", "`dry_run` goes with `query` only");
    }
    fields.finish(findings);
    request
}

fn read_ids(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<Vec<MessageId>> {
    let values = fields.array("ids", IDS_MAX, findings)?;
    if values.is_empty() || values.len() > IDS_MAX {
        findings.problem("/ids", format!("`ids` should have 1 to {IDS_MAX} entries"));
        return Some(Vec::new());
    }
    let mut ids = Vec::with_capacity(values.len());
    for (pointer, json) in values {
        match json {
            // An id beyond 64 bits becomes 0, which no message has.
            Json::Number(number) if !number.is_float() => ids.push(MessageId(number.as_i64().unwrap_or(0))),
            other => findings.wrong_type(&pointer, "Integer", other.type_name()),
        }
    }
    Some(ids)
}

fn failure_of(id: EchoedId, failure: ActionFailure) -> Failure {
    match failure {
        ActionFailure::NotFound => id.failure(postroad_app::LookupError::NotFound),
        ActionFailure::Store(error) => error.into(),
        other => Reason::MessageUnchanged(other).into(),
    }
}

impl From<JobRefusal> for Failure {
    fn from(refusal: JobRefusal) -> Self {
        match refusal {
            JobRefusal::Query(FieldProblem { pointer, message }) => FieldProblem { pointer, message }.into(),
            JobRefusal::TooMany => Reason::TooManyJobs.into(),
            JobRefusal::Store(error) => error.into(),
        }
    }
}

impl From<(MessageId, Result<(), ActionFailure>)> for ResultOut {
    fn from((id, result): (MessageId, Result<(), ActionFailure>)) -> Self {
        let error = result.err().map(|failure| ResultErrorOut {
            code: failure.code().unwrap_or("ServiceUnavailable"),
            message: failure.to_string(),
        });
        Self { id: id.0, status: if error.is_some() { "error" } else { "done" }, error }
    }
}
