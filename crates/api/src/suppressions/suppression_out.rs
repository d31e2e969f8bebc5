//! JSON forms of a suppression and of a failed item.

use crate::documented::ToSchema;
use postroad_app::FieldProblem;
use postroad_model::Timestamp;
use postroad_store::Suppression;
use serde::Serialize;

/// Estimated size of an entry in a list; its details have up to 500 bytes.
pub(super) const SUPPRESSION_BYTES: usize = 1 << 10;

/// An address to which the server no longer sends.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuppressionOut {
    /// Local part in lower case, domain in ASCII form.
    #[schema(example = "ann@example.com")]
    address: String,
    /// `hard_bounce`, `complaint`, `manual`, `unsubscribe` or `soft_bounce`
    #[schema(example = "hard_bounce")]
    reason: &'static str,
    /// Explanation from the mail server or the customer.
    details: String,
    /// Message that caused the suppression.
    origin_message_id: Option<i64>,
    #[schema(example = "2026-11-15T12:00:00Z")]
    created_at: String,
    /// Equal to `created_at`: an entry is replaced, never changed.
    updated_at: String,
    /// End of the suppression; null for never.
    expires_at: Option<String>,
}

impl From<Suppression> for SuppressionOut {
    fn from(suppression: Suppression) -> Self {
        let created_at = suppression.created_at.to_rfc3339();
        Self {
            address: suppression.address,
            reason: suppression.reason.as_str(),
            details: suppression.details,
            origin_message_id: suppression.origin_message_id.map(|id| id.0),
            updated_at: created_at.clone(),
            created_at,
            expires_at: suppression.expires_at.map(Timestamp::to_rfc3339),
        }
    }
}

/// Item that failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailedItemOut {
    index: usize,
    /// `error`
    #[schema(example = "error")]
    status: &'static str,
    error: ItemErrorOut,
}

impl FailedItemOut {
    pub(super) fn new(index: usize, problems: Vec<FieldProblem>) -> Self {
        Self { index, status: "error", error: problems.into() }
    }
}

/// Problems of an item.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ItemErrorOut {
    #[schema(example = "ValidationError")]
    code: &'static str,
    /// First problem in one sentence.
    message: String,
    errors: Vec<ItemProblemOut>,
}

/// One invalid field of an item.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ItemProblemOut {
    /// JSON pointer to the field.
    #[schema(example = "/items/3/address")]
    pointer: String,
    message: String,
}

impl From<Vec<FieldProblem>> for ItemErrorOut {
    fn from(problems: Vec<FieldProblem>) -> Self {
        Self {
            code: "ValidationError",
            message: problems.first().map(|problem| problem.message.clone()).unwrap_or_default(),
            errors: problems
                .into_iter()
                .map(|FieldProblem { pointer, message }| ItemProblemOut { pointer, message })
                .collect(),
        }
    }
}
