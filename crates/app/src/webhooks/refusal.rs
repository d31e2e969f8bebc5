//! Why something was not done with a webhook.

use postroad_store::StoreError;

use crate::FieldProblem;

#[derive(Debug, thiserror::Error)]
pub enum WebhookRefusal {
    #[error("fields are wrong")]
    Validation(Vec<FieldProblem>),
    #[error("no such webhook")]
    NotFound,
    /// The event to be told again is not there, or not any more.
    #[error("no such event")]
    EventNotFound,
    #[error("the server has as many webhooks as a server may have")]
    TooMany,
    #[error(transparent)]
    Store(StoreError),
}

/// Verbs about one webhook say `NotFound` when it is not there.
impl From<StoreError> for WebhookRefusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            other => Self::Store(other),
        }
    }
}
