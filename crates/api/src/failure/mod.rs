//! Failures of calls, and the one table from reason to HTTP status, envelope status, code and text.

#[cfg(test)]
mod code;
mod from_refusals;
mod refusal_texts;

use std::borrow::Cow;

use crate::documented::ToSchema;
use axum::http::header::{ALLOW, RETRY_AFTER};
use axum::http::{HeaderName, Method, StatusCode};
use postroad_app::access::Denial;
use postroad_app::accounts::AccountRefusal;
use postroad_app::templates::TemplateProblem;
use postroad_app::{ActionFailure, FieldProblem, KeyKind, Refusal};
use serde::Serialize;
use serde_json::value::RawValue;

#[cfg(test)]
pub(crate) use self::code::ErrorCode;
use self::refusal_texts::{account_code_and_text, denial_text, key_code_and_header};
use crate::rate_limit::RateLimit;

/// Maximum number of characters of a refused method that the answer shows.
const METHOD_CHARS_MAX: usize = 20;
/// Maximum number of problems listed in one answer; the answer gives the number of further problems.
pub(crate) const PROBLEMS_SHOWN_MAX: usize = 100;

/// Failed call.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: Reason,
    /// Number of problems beyond those kept in `reason`.
    pub(crate) problems_left_out: usize,
    /// Warnings for the caller, such as unknown fields, which are often the cause.
    pub(crate) warnings: Vec<String>,
    /// The limit that the call exceeds, for the headers.
    pub(crate) rate_limit: Option<Box<RateLimit>>,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Reason {
    UnknownEndpoint,
    /// The request's method, and the methods that the endpoint accepts.
    MethodNotAllowed(Method, &'static str),
    /// The request is not valid HTTP.
    BadRequest(&'static str),
    Maintenance,
    KeyMissing(KeyKind),
    KeyInvalid {
        kind: KeyKind,
        token: String,
    },
    ServerSuspended,
    AccountSuspended,
    /// An operation on accounts, servers, credentials, people or pools was refused, or a version was outdated.
    Account(AccountRefusal),
    /// The caller is known, but may not do this.
    Denied(Denial),
    RequestTooLarge {
        bytes_max: usize,
    },
    MessageNotFound {
        id: Box<RawValue>,
    },
    MessageNotScheduled,
    TooLateToCancel,
    /// An atomic batch of which some messages are refused, with the results of all.
    BatchRejected {
        refused: usize,
        results: Box<RawValue>,
    },
    /// The call did not change the message, for this reason.
    MessageUnchanged(ActionFailure),
    JobNotFound,
    TooManyJobs,
    WebhookNotFound,
    EventNotFound,
    TooManyWebhooks,
    SuppressionNotFound,
    DomainNotFound,
    DomainExists,
    TooManyDomains {
        domains_max: usize,
    },
    DomainsBusy,
    DomainNotVerified,
    /// A server's key, or a call that names a server, cannot change a domain of the account.
    DomainOfAccount,
    TemplateNotFound,
    TemplateVersionNotFound,
    TemplateInvalid(Vec<TemplateProblem>),
    NothingToRollBackTo,
    TemplateAliasTaken,
    TemplateInUse,
    TooManyTemplates,
    Refused(Refusal),
    /// The call may succeed later; the text is for the log.
    Unavailable(String),
    /// A bug in Postroad; the text is for the log.
    Internal(String),
}

/// `status` of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FailureStatus {
    /// The fields of the request are wrong: `ValidationError`.
    ParameterError,
    /// Every other failure.
    Error,
}

/// What the caller sees of a reason: HTTP status, envelope status, code, text and possibly a header.
pub(crate) struct Row<'a> {
    pub(crate) http: StatusCode,
    pub(crate) status: FailureStatus,
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'a, str>,
    pub(crate) header: Option<(HeaderName, &'static str)>,
}

impl Reason {
    pub(crate) fn row(&self) -> Row<'_> {
        let error =
            |http, code, message| Row { http, status: FailureStatus::Error, code, message, header: None };
        let (ok, not_found) = (StatusCode::OK, StatusCode::NOT_FOUND);
        match self {
            Self::UnknownEndpoint => error(
                not_found,
                "UnknownEndpoint",
                "There is no such endpoint; GET /api/v1/openapi.json lists all endpoints".into(),
            ),
            Self::MethodNotAllowed(method, allowed) => {
                let method: String = method.as_str().chars().take(METHOD_CHARS_MAX).collect();
                let first = allowed.split(',').next().unwrap_or_default();
                Row {
                    header: Some((ALLOW, allowed)),
                    ..error(
                        StatusCode::METHOD_NOT_ALLOWED,
                        "MethodNotAllowed",
                        format!("This endpoint does not take {method}; use {first}").into(),
                    )
                }
            }
            Self::BadRequest(message) => error(StatusCode::BAD_REQUEST, "BadRequest", (*message).into()),
            Self::Maintenance => Row {
                header: Some((RETRY_AFTER, "60")),
                ..error(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "Maintenance",
                    "The service is in maintenance; try again later".into(),
                )
            },
            Self::KeyMissing(kind) => {
                let (code, header) = key_code_and_header(*kind);
                error(ok, code, format!("The API token was not provided: set the header {header}").into())
            }
            Self::KeyInvalid { kind, .. } => {
                let (code, header) = key_code_and_header(*kind);
                error(ok, code, format!("The API token provided in {header} was not valid.").into())
            }
            Self::AccountSuspended => {
                error(ok, "AccountSuspended", "The account has been suspended".into())
            }
            Self::Account(refusal) => {
                let (code, message) = account_code_and_text(refusal);
                error(ok, code, message)
            }
            Self::ServerSuspended => {
                error(ok, "ServerSuspended", "The mail server has been suspended".into())
            }
            Self::Denied(denial) => error(ok, "AccessDenied", denial_text(denial)),
            Self::RequestTooLarge { bytes_max } => error(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestTooLarge",
                format!("The request body is larger than {bytes_max} bytes").into(),
            ),
            Self::MessageNotFound { .. } => {
                error(ok, "MessageNotFound", "No message found matching provided ID".into())
            }
            Self::MessageNotScheduled => error(
                ok,
                "MessageNotScheduled",
                "The message is not scheduled: it has no `send_at`, or is held or cancelled".into(),
            ),
            Self::TooLateToCancel => {
                error(ok, "TooLateToCancel", "The message is being sent at this moment, or was sent before".into())
            }
            Self::BatchRejected { refused, .. } => error(
                ok,
                "BatchRejected",
                format!("The batch is atomic and {refused} of its messages cannot be sent, so none was accepted").into(),
            ),
            Self::MessageUnchanged(failure) => {
                error(ok, failure.code().unwrap_or("InternalError"), failure.to_string().into())
            }
            Self::JobNotFound => error(ok, "JobNotFound", "No job found matching provided ID".into()),
            Self::TooManyJobs => error(
                ok,
                "TooManyJobs",
                "The server has the maximum number of running jobs; wait for one to end".into(),
            ),
            Self::WebhookNotFound => {
                error(ok, "WebhookNotFound", "No webhook found matching provided ID".into())
            }
            Self::EventNotFound => error(
                ok,
                "EventNotFound",
                "No event found matching provided ID; events are kept for a limited time".into(),
            ),
            Self::TooManyWebhooks => error(
                ok,
                "TooManyWebhooks",
                "The server has the maximum number of webhooks; delete one first".into(),
            ),
            Self::SuppressionNotFound => {
                error(ok, "SuppressionNotFound", "The address is not suppressed".into())
            }
            Self::DomainNotFound => {
                error(ok, "DomainNotFound", "No domain found matching provided name".into())
            }
            Self::DomainExists => error(ok, "DomainExists", "The server, or its account, has this domain already".into()),
            Self::TooManyDomains { domains_max } => error(
                ok,
                "TooManyDomains",
                format!("The server, or its account, has {domains_max} domains, the maximum; delete one first").into(),
            ),
            Self::DomainNotVerified => error(
                ok,
                "DomainNotVerified",
                "The domain is not verified: its reports are shown after verification; call domains/verify first".into(),
            ),
            Self::DomainsBusy => Row {
                header: Some((RETRY_AFTER, "5")),
                ..error(
                    ok,
                    "DomainsBusy",
                    "Too many domains are being added or checked at this moment; try again in a few seconds".into(),
                )
            },
            Self::DomainOfAccount => error(
                ok,
                "AccessDenied",
                "The domain belongs to the account, and other servers may use it: change it with an account key, without naming a server".into(),
            ),
            Self::TemplateNotFound => {
                error(ok, "TemplateNotFound", "No template found matching provided ID or alias".into())
            }
            Self::TemplateVersionNotFound => error(
                ok,
                "TemplateVersionNotFound",
                "The template has no such version; templates/versions lists the stored ones".into(),
            ),
            Self::TemplateInvalid(problems) => {
                let first = problems.first().map(|problem| problem.message.as_str());
                let message = format!("The template has a mistake: {}", first.unwrap_or("it is not valid"));
                error(ok, "TemplateInvalid", message.into())
            }
            Self::NothingToRollBackTo => error(
                ok,
                "NothingToRollBackTo",
                "No other version was published before; name one with `version`".into(),
            ),
            Self::TemplateAliasTaken => {
                error(ok, "TemplateAliasTaken", "Another template of the server has this alias".into())
            }
            Self::TemplateInUse => error(
                ok,
                "TemplateInUse",
                "Templates have this layout around them; give them another layout first".into(),
            ),
            Self::TooManyTemplates => error(
                ok,
                "TooManyTemplates",
                "The server has the maximum number of templates; delete one first".into(),
            ),
            Self::Refused(refusal @ Refusal::Validation(_)) => Row {
                status: FailureStatus::ParameterError,
                ..error(ok, refusal.code(), refusal.message().into())
            },
            Self::Refused(refusal) => error(ok, refusal.code(), refusal.message().into()),
            Self::Unavailable(_) => Row {
                header: Some((RETRY_AFTER, "5")),
                ..error(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "ServiceUnavailable",
                    "The service cannot do this at the moment; try again shortly".into(),
                )
            },
            Self::Internal(_) => error(
                StatusCode::INTERNAL_SERVER_ERROR,
                "InternalError",
                "An unexpected error occurred; tell support the request_id".into(),
            ),
        }
    }
}

impl Failure {
    pub(crate) fn validation(problems: Vec<FieldProblem>) -> Self {
        Refusal::Validation(problems).into()
    }

    #[must_use]
    pub(crate) fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self { reason, problems_left_out: 0, warnings: Vec::new(), rate_limit: None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use postroad_app::AddressList;
    use postroad_app::accounts::ObjectKind;
    use postroad_app::templates::RenderFailure;
    use postroad_model::{SuppressionReason, Timestamp};

    use super::*;

    fn every_reason() -> Vec<Reason> {
        let refusals = [
            Refusal::Validation(Vec::new()),
            Refusal::CeilingExceeded(Vec::new()),
            Refusal::NoRecipients,
            Refusal::TooManyAddresses(AddressList::To),
            Refusal::TooManyAddresses(AddressList::Cc),
            Refusal::TooManyAddresses(AddressList::Bcc),
            Refusal::NoContent,
            Refusal::FromAddressMissing,
            Refusal::UnauthenticatedFromAddress,
            Refusal::AttachmentMissingName,
            Refusal::AttachmentMissingData,
            Refusal::IdempotencyConflict,
            Refusal::IdempotencyInProgress,
            Refusal::TemplateNotPublished,
            Refusal::TemplateRendering(Box::new(RenderFailure::Failed {
                part: String::new(),
                line: 0,
                message: String::new(),
            })),
            Refusal::TemplateRendering(Box::new(RenderFailure::VariableMissing {
                variable: String::new(),
                part: String::new(),
                line: 0,
                column: 0,
                nearest: None,
                message: String::new(),
            })),
        ];
        let mut reasons: Vec<Reason> = refusals.into_iter().map(Reason::Refused).collect();
        reasons.extend([
            Reason::UnknownEndpoint,
            Reason::MethodNotAllowed(Method::DELETE, "POST"),
            Reason::BadRequest("There are two Host headers"),
            Reason::Maintenance,
            Reason::KeyMissing(KeyKind::Server),
            Reason::KeyInvalid { kind: KeyKind::Account, token: String::new() },
            Reason::KeyMissing(KeyKind::Operator),
            Reason::ServerSuspended,
            Reason::AccountSuspended,
            Reason::Account(AccountRefusal::Exists(ObjectKind::Account)),
            Reason::Account(AccountRefusal::Exists(ObjectKind::Server)),
            Reason::Account(AccountRefusal::Exists(ObjectKind::User)),
            Reason::Account(AccountRefusal::LastOwner),
            Reason::Account(AccountRefusal::OtherVersion(2)),
            Reason::Account(AccountRefusal::CredentialEnded),
            Reason::Account(AccountRefusal::SetByOperator),
            Reason::Account(AccountRefusal::PoolInUse),
            Reason::Account(AccountRefusal::Exists(ObjectKind::IpPool)),
            Reason::Account(AccountRefusal::Exists(ObjectKind::IpAddress)),
            Reason::Denied(Denial::TestKey),
            Reason::RequestTooLarge { bytes_max: 1 },
            Reason::MessageNotFound { id: RawValue::from_string("1".into()).unwrap() },
            Reason::MessageNotScheduled,
            Reason::TooLateToCancel,
            Reason::BatchRejected { refused: 1, results: RawValue::from_string("[]".into()).unwrap() },
            Reason::MessageUnchanged(ActionFailure::NotQueued),
            Reason::MessageUnchanged(ActionFailure::NotHeld),
            Reason::MessageUnchanged(ActionFailure::NotScheduled),
            Reason::MessageUnchanged(ActionFailure::InDelivery),
            Reason::MessageUnchanged(ActionFailure::TextNeeded),
            Reason::MessageUnchanged(ActionFailure::HourlyLimitReached { limit: 1 }),
            Reason::MessageUnchanged(ActionFailure::DevelopmentOnly),
            Reason::MessageUnchanged(ActionFailure::AccountLimitReached {
                limit: 1,
                period: postroad_model::LimitPeriod::Hour,
            }),
            Reason::MessageUnchanged(ActionFailure::Suppressed {
                reason: SuppressionReason::Manual,
                since: Timestamp::from_micros(0),
            }),
            Reason::JobNotFound,
            Reason::TooManyJobs,
            Reason::WebhookNotFound,
            Reason::EventNotFound,
            Reason::TooManyWebhooks,
            Reason::SuppressionNotFound,
            Reason::DomainNotFound,
            Reason::DomainExists,
            Reason::TooManyDomains { domains_max: 1 },
            Reason::DomainsBusy,
            Reason::DomainNotVerified,
            Reason::DomainOfAccount,
            Reason::TemplateNotFound,
            Reason::TemplateVersionNotFound,
            Reason::TemplateInvalid(Vec::new()),
            Reason::NothingToRollBackTo,
            Reason::TemplateAliasTaken,
            Reason::TemplateInUse,
            Reason::TooManyTemplates,
            Reason::Unavailable("cause".into()),
            Reason::Internal("cause".into()),
        ]);
        reasons.extend(ObjectKind::ALL.map(|kind| Reason::Account(AccountRefusal::NotFound(kind))));
        reasons
    }

    #[test]
    fn documented_codes_are_those_of_all_reasons() {
        let reasons = every_reason();
        let returned: BTreeSet<&str> = reasons.iter().map(|reason| reason.row().code).collect();
        let documented: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.name).collect();
        assert_eq!(returned, documented);
    }

    #[test]
    fn causes_are_not_shown_and_only_validation_errors_are_parameter_errors() {
        for reason in every_reason() {
            let row = reason.row();
            assert!(!row.message.contains("cause"), "{}", row.message);
            assert_eq!(
                row.status == FailureStatus::ParameterError,
                row.code == "ValidationError",
                "{}",
                row.code
            );
        }
    }
}
