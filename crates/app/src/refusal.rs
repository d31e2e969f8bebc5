//! Refusals of sends; other operations use the variants that fit. One table gives each refusal its code and text, for
//! all entry points.

use std::fmt;

use postroad_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::templates::RenderFailure;

/// Why an operation was refused. Nothing was stored, except possibly after `Unavailable`: a commit whose answer was
/// lost may have succeeded.
///
/// Serialised in the stored answer to a batch, which repeated requests get: names of variants must not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Invalid fields, all of them at once.
    Validation(Vec<FieldProblem>),
    /// Settings above their ceilings, each with its ceiling; or more objects than the account may have.
    CeilingExceeded(Vec<FieldProblem>),
    NoRecipients,
    TooManyAddresses(AddressList),
    NoContent,
    FromAddressMissing,
    UnauthenticatedFromAddress,
    AttachmentMissingName,
    AttachmentMissingData,
    /// An SMTP message in a mail loop. Over HTTP this is a `Validation` of `data`.
    MailLoop,
    /// The template cannot be rendered with this model.
    TemplateRendering(Box<RenderFailure>),
    /// The template has no published version.
    TemplateNotPublished,
    /// The idempotency key was used for another request.
    IdempotencyConflict,
    /// The first request with this idempotency key is still in progress.
    IdempotencyInProgress,
    /// The store is unavailable; the text is for the log.
    Unavailable(String),
    /// A bug in Postroad; the text is for the log.
    Internal(String),
}

/// One invalid field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldProblem {
    /// JSON pointer to the field, such as `/to/3`; empty for the whole request.
    pub pointer: String,
    pub message: String,
}

/// Pointers and messages are cut, because they quote the request, which can be of any length.
const POINTER_BYTES_MAX: usize = 300;
const MESSAGE_BYTES_MAX: usize = 1_000;

impl FieldProblem {
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: cut(pointer.into(), POINTER_BYTES_MAX),
            message: cut(message.into(), MESSAGE_BYTES_MAX),
        }
    }
}

fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressList {
    To,
    Cc,
    Bcc,
}

impl Refusal {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Validation(_) | Self::MailLoop => "ValidationError",
            Self::CeilingExceeded(_) => "CeilingExceeded",
            Self::NoRecipients => "NoRecipients",
            Self::TooManyAddresses(AddressList::To) => "TooManyToAddresses",
            Self::TooManyAddresses(AddressList::Cc) => "TooManyCCAddresses",
            Self::TooManyAddresses(AddressList::Bcc) => "TooManyBCCAddresses",
            Self::NoContent => "NoContent",
            Self::FromAddressMissing => "FromAddressMissing",
            Self::UnauthenticatedFromAddress => "UnauthenticatedFromAddress",
            Self::AttachmentMissingName => "AttachmentMissingName",
            Self::AttachmentMissingData => "AttachmentMissingData",
            Self::TemplateRendering(failure) => failure.code(),
            Self::TemplateNotPublished => "TemplateNotPublished",
            Self::IdempotencyConflict => "IdempotencyConflict",
            Self::IdempotencyInProgress => "IdempotencyInProgress",
            Self::Unavailable(_) => "ServiceUnavailable",
            Self::Internal(_) => "InternalError",
        }
    }

    /// Public text; internal causes stay in the log.
    pub fn message(&self) -> &str {
        match self {
            Self::Validation(problems) => {
                problems.first().map_or("The request is not valid", |problem| problem.message.as_str())
            }
            Self::CeilingExceeded(problems) => problems
                .first()
                .map_or("The operator does not allow this value", |problem| problem.message.as_str()),
            Self::NoRecipients => "There are no recipients defined to receive this message",
            Self::TooManyAddresses(AddressList::To) => {
                "The maximum number of To addresses has been reached (maximum 50)"
            }
            Self::TooManyAddresses(AddressList::Cc) => {
                "The maximum number of CC addresses has been reached (maximum 50)"
            }
            Self::TooManyAddresses(AddressList::Bcc) => {
                "The maximum number of BCC addresses has been reached (maximum 50)"
            }
            Self::MailLoop => {
                "The message is in a mail loop: it has passed too many servers, or this service too often"
            }
            Self::NoContent => "There is no content defined for this e-mail",
            Self::FromAddressMissing => "The From address is missing and is required",
            Self::UnauthenticatedFromAddress => {
                "The From address is not authorised to send mail from this server"
            }
            Self::AttachmentMissingName => "An attachment is missing a name",
            Self::AttachmentMissingData => "An attachment is missing data",
            Self::TemplateRendering(failure) => failure.message(),
            Self::TemplateNotPublished => "The template is a draft; publish it with templates/publish first",
            Self::IdempotencyConflict => "The idempotency key was used before for a different request",
            Self::IdempotencyInProgress => {
                "A request with the same idempotency key is still being processed; try again in a moment"
            }
            Self::Unavailable(_) => "The service cannot accept messages at the moment; try again shortly",
            Self::Internal(_) => "An unexpected error occurred",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(cause) => Self::Unavailable(cause),
            StoreError::KeyInUse => Self::IdempotencyInProgress,
            StoreError::CeilingReached { object, ceiling } => {
                let what = object.as_str();
                let message = format!(
                    "The account may have at most {ceiling} {what}: the operator of the service set this ceiling"
                );
                Self::CeilingExceeded(vec![FieldProblem::new("", message)])
            }
            other => Self::Internal(other.to_string()),
        }
    }
}
