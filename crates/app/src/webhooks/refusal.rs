//! Refusals of webhook operations.

use postroad_store::StoreError;

use crate::{FieldProblem, Refusal};

#[derive(Debug, thiserror::Error)]
pub enum WebhookRefusal {
    #[error("fields are wrong")]
    Validation(Vec<FieldProblem>),
    #[error("no such webhook")]
    NotFound,
    /// The event to replay does not exist (any more), or the webhook has no such attempt.
    #[error("no such event")]
    EventNotFound,
    /// The webhook has this version, not the version that the caller has seen.
    #[error("the webhook has another version")]
    OtherVersion(i64),
    #[error("the server has as many webhooks as a server may have")]
    TooMany,
    /// The idempotency key was used for another request, or could not be looked up.
    #[error("{}", .0.message())]
    Refused(Refusal),
    #[error(transparent)]
    Store(StoreError),
}

impl From<Refusal> for WebhookRefusal {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Store operations on one webhook return `NotFound` if the webhook does not exist.
impl From<StoreError> for WebhookRefusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            other => Self::Store(other),
        }
    }
}
