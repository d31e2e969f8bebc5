//! JSON envelope around every answer of the API. Its keys have a fixed order.

use std::borrow::Cow;
use std::ops::Not;

use crate::documented::ToSchema;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use postroad_app::templates::{RenderFailure, TemplateProblem};
use postroad_app::{FieldProblem, KeyKind, Refusal};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::answer_writer::{AnswerWriter, WriteJson};
use crate::failure::{Failure, FailureStatus, PROBLEMS_SHOWN_MAX, Reason};
use crate::memory::Share;
use crate::page::Pagination;
use crate::rate_limit::RateLimit;
use crate::request_info::{LogFields, LoggedCaller, RequestInfo};
use crate::tenant::Tenant;

/// Result of a successful call: payload, flags and memory.
#[derive(Debug)]
pub(crate) struct Success<T> {
    pub(crate) data: T,
    pub(crate) flags: Flags,
    pub(crate) memory: AnswerMemory,
}

/// How the memory of an answer is counted.
#[derive(Debug, Default)]
pub(crate) enum AnswerMemory {
    /// Small answer: counted once it is written.
    #[default]
    Small,
    /// The call changed something: the caller gets the answer even if no memory is free.
    Exempt,
    /// Large answer: its memory was reserved before it was built.
    Reserved(Share),
}

impl AnswerMemory {
    /// For a call that changed something: its answer never fails for lack of memory.
    pub(crate) fn exempt(&mut self) {
        if matches!(self, Self::Small) {
            *self = Self::Exempt;
        }
    }
}

impl From<Option<Share>> for AnswerMemory {
    fn from(reserved: Option<Share>) -> Self {
        reserved.map_or(Self::Small, Self::Reserved)
    }
}

/// Payload of an answer, as one type for all endpoints.
pub(crate) trait Payload: Send {
    fn into_envelope(self: Box<Self>, time: f64, flags: Flags) -> Box<dyn WriteJson>;
}

impl<T: Serialize + Send + Sync + 'static> Payload for T {
    fn into_envelope(self: Box<Self>, time: f64, flags: Flags) -> Box<dyn WriteJson> {
        Box::new(SuccessEnvelope { status: SuccessStatus::Success, time, flags, data: *self })
    }
}

impl<T: Payload + 'static> Success<T> {
    /// Boxes the payload, for the code that all endpoints share.
    pub(crate) fn box_payload(self) -> Success<Box<dyn Payload>> {
        Success { data: Box::new(self.data), flags: self.flags, memory: self.memory }
    }
}

impl<T> Success<T> {
    /// Makes a small answer from the payload, with the warnings in its flags. If the call failed, the failure gets the
    /// warnings.
    pub(crate) fn with_warnings(done: Result<T, Failure>, warnings: Vec<String>) -> Result<Self, Failure> {
        match done {
            Ok(data) => {
                Ok(Self { data, flags: Flags { warnings, ..Flags::default() }, memory: AnswerMemory::Small })
            }
            Err(failure) => Err(failure.with_warnings(warnings)),
        }
    }
}

/// Notes on the answer; usually `{}`.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Flags {
    /// Position in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pagination: Option<Pagination>,
    /// The messages were validated and recorded, and will not be delivered.
    #[serde(skip_serializing_if = "Not::not")]
    #[schema(required = false)]
    pub(crate) test_mode: bool,
    /// The request repeats an earlier one with the same idempotency key: nothing was sent or created again.
    #[serde(skip_serializing_if = "Not::not")]
    #[schema(required = false)]
    pub(crate) idempotent_replay: bool,
    /// Warnings, such as unknown fields that were ignored, or limits that are nearly used up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, example = json!(["Unknown field `form` was ignored"]))]
    pub(crate) warnings: Vec<String>,
    /// A limit that the call counted against, for the headers.
    #[serde(skip)]
    pub(crate) rate_limit: Option<RateLimit>,
}

/// `status` of a successful call.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SuccessStatus {
    Success,
}

/// Answer to a successful call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuccessEnvelope<T> {
    status: SuccessStatus,
    /// Seconds the server worked on the call.
    #[schema(example = 0.004)]
    time: f64,
    flags: Flags,
    data: T,
}

/// Answer to a failed call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailureEnvelope<'a> {
    status: FailureStatus,
    /// Seconds the server worked on the call.
    #[schema(example = 0.001)]
    time: f64,
    flags: Flags,
    data: ErrorOut<'a>,
}

/// Cause of the failure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorOut<'a> {
    #[schema(value_type = crate::failure::ErrorCode)]
    code: &'static str,
    /// One sentence for people; with ValidationError, the first problem.
    message: Cow<'a, str>,
    /// With InvalidServerAPIKey: the key that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    token: Option<OrNull<&'a str>>,
    /// With MessageNotFound: the id as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    id: Option<&'a RawValue>,
    /// With BatchRejected: the result of every message; `not_sent` for valid ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    results: Option<&'a RawValue>,
    /// With ValidationError, CeilingExceeded and TemplateInvalid: up to 100 problems; with the first two, a last entry
    /// gives the number of further problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<FieldErrorOut<'a>>>,
    /// With TemplateVariableMissing: the variable that the model lacks, as the template writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<&'a str>,
    /// With TemplateVariableMissing: the most similar name in the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    did_you_mean: Option<OrNull<&'a str>>,
    /// With TemplateVariableMissing and TemplateRenderingFailed: the text with the error, such as `html_body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<&'a str>,
    /// With TemplateVariableMissing and TemplateRenderingFailed: the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// With TemplateVariableMissing: the column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    /// With InternalError: quote this to support; the same as the header X-Request-Id.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

/// Field that is always present and may be null.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct OrNull<T>(pub(crate) Option<T>);

/// One invalid field.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct FieldErrorOut<'a> {
    /// JSON pointer to the field.
    #[schema(example = "/to/3")]
    pointer: Cow<'a, str>,
    #[schema(example = "`to/3` should be a `String` but is a `Integer`")]
    message: Cow<'a, str>,
    /// With TemplateInvalid: the text with the error, such as `html_body` or `locales/de/subject`.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<&'a str>,
    /// With TemplateInvalid: the line, from 1; 0 for the whole text.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// With TemplateInvalid: the column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

/// Writes the answer to a call.
pub(crate) async fn respond(
    info: &RequestInfo,
    (tenant, caller): (Tenant, LoggedCaller),
    answer_writer: &AnswerWriter,
    outcome: Result<Success<Box<dyn Payload>>, Failure>,
) -> Response {
    let rate_limit = match &outcome {
        Ok(success) => success.flags.rate_limit,
        Err(failure) => failure.rate_limit.as_deref().copied(),
    };
    let mut response = match outcome {
        Ok(Success { data, flags, memory }) => {
            let envelope = data.into_envelope(info.seconds(), flags);
            let body = match memory {
                AnswerMemory::Reserved(memory) => answer_writer.write_reserved(envelope, memory).await,
                AnswerMemory::Small => answer_writer.write(tenant, &*envelope).await,
                AnswerMemory::Exempt => match answer_writer.write(tenant, &*envelope).await {
                    Err(_) => answer_writer.write_in_any_case(&*envelope),
                    written => written,
                },
            };
            match body {
                Ok(body) => with_logged_code(json_response(StatusCode::OK, body), "success"),
                Err(failure) => failure_response(info, &failure),
            }
        }
        Err(failure) => {
            let answer = prepare_failure(info, &failure);
            match answer_writer.write(tenant, &answer.envelope).await {
                Ok(body) => answer.into_response(body),
                Err(unavailable) => failure_response(info, &unavailable),
            }
        }
    };
    if let Some(rate_limit) = rate_limit {
        rate_limit.write(response.headers_mut());
    }
    if let Some(fields) = response.extensions_mut().get_mut::<LogFields>() {
        fields.caller = Some(caller);
    }
    response
}

/// Writes a small answer to a failed call, without counting its memory: the caller is unknown, or no memory is free.
pub(crate) fn failure_response(info: &RequestInfo, failure: &Failure) -> Response {
    let answer = prepare_failure(info, failure);
    let text = serde_json::to_vec(&answer.envelope).expect("an error can be written as JSON");
    answer.into_response(text.into())
}

/// Answer to a failed call, without its serialised body.
struct FailureAnswer<'a> {
    envelope: FailureEnvelope<'a>,
    http: StatusCode,
    code: &'static str,
    header: Option<(HeaderName, &'static str)>,
}

impl FailureAnswer<'_> {
    fn into_response(self, body: Body) -> Response {
        let mut response = with_logged_code(json_response(self.http, body), self.code);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Builds the answer to a failure, and logs the cause if the fault is ours.
fn prepare_failure<'a>(info: &'a RequestInfo, failure: &'a Failure) -> FailureAnswer<'a> {
    let Failure { reason, warnings, .. } = failure;
    match reason {
        Reason::Internal(cause) => {
            tracing::error!(request.id = %info.id, request.own_id = %info.own_id, cause, "internal error");
        }
        Reason::Unavailable(cause) => {
            tracing::warn!(request.id = %info.id, request.own_id = %info.own_id, cause, "call answered with 503: it cannot be done now");
        }
        _ => {}
    }
    let row = reason.row();
    let mut data = ErrorOut::of(failure);
    if matches!(reason, Reason::Internal(_)) {
        data.request_id = Some(&info.id);
    }
    let flags = Flags { warnings: warnings.clone(), ..Flags::default() };
    let envelope = FailureEnvelope { status: row.status, time: info.seconds(), flags, data };
    FailureAnswer { envelope, http: row.http, code: row.code, header: row.header }
}

impl<'a> ErrorOut<'a> {
    /// Public form of a failure, without the request's id.
    pub(crate) fn of(failure: &'a Failure) -> Self {
        let reason = &failure.reason;
        let row = reason.row();
        let mut data = Self {
            code: row.code,
            message: row.message,
            token: None,
            id: None,
            results: None,
            errors: None,
            variable: None,
            did_you_mean: None,
            part: None,
            line: None,
            column: None,
            request_id: None,
        };
        match reason {
            Reason::KeyMissing(KeyKind::Server) => data.token = Some(OrNull(None)),
            // Postal's API echoes the key of a server; keys of accounts and of the operator are never echoed.
            Reason::KeyInvalid { kind: KeyKind::Server, token } => data.token = Some(OrNull(Some(token))),
            Reason::MessageNotFound { id } => data.id = Some(id),
            Reason::BatchRejected { results, .. } => data.results = Some(results),
            Reason::Refused(Refusal::Validation(problems) | Refusal::CeilingExceeded(problems)) => {
                data.errors = Some(field_errors(problems, failure.problems_left_out));
            }
            Reason::TemplateInvalid(problems) => {
                let shown = problems.iter().take(PROBLEMS_SHOWN_MAX).map(template_error);
                data.errors = Some(shown.collect());
            }
            Reason::Refused(Refusal::TemplateRendering(rendering)) => match &**rendering {
                RenderFailure::VariableMissing { variable, part, line, column, nearest, .. } => {
                    data.variable = Some(variable);
                    data.did_you_mean = Some(OrNull(nearest.as_deref()));
                    (data.part, data.line, data.column) = (Some(part.as_str()), Some(*line), Some(*column));
                }
                RenderFailure::Failed { part, line, .. } => {
                    (data.part, data.line) = (Some(part.as_str()), Some(*line));
                }
            },
            _ => {}
        }
        data
    }
}

/// Lists the first problems, and how many more there are.
fn field_errors(problems: &[FieldProblem], left_out: usize) -> Vec<FieldErrorOut<'_>> {
    let mut errors: Vec<_> = problems.iter().take(PROBLEMS_SHOWN_MAX).map(field_error).collect();
    let more = problems.len() - errors.len() + left_out;
    if more > 0 {
        errors.push(FieldErrorOut { message: format!("and {more} more").into(), ..FieldErrorOut::default() });
    }
    errors
}

fn field_error(problem: &FieldProblem) -> FieldErrorOut<'_> {
    FieldErrorOut {
        pointer: problem.pointer.as_str().into(),
        message: problem.message.as_str().into(),
        ..FieldErrorOut::default()
    }
}

fn template_error(problem: &TemplateProblem) -> FieldErrorOut<'_> {
    FieldErrorOut {
        pointer: format!("/{}", problem.part).into(),
        message: problem.message.as_str().into(),
        part: Some(&problem.part),
        line: Some(problem.line),
        column: Some(problem.column),
    }
}

fn with_logged_code(mut response: Response, code: &'static str) -> Response {
    response.extensions_mut().insert(LogFields { code, caller: None });
    response
}

/// JSON answer with a header that forbids caching.
pub(crate) fn json_response(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
