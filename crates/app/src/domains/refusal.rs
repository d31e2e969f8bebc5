//! Why something was not done with a domain.

use postroad_store::StoreError;

use crate::FieldProblem;
use crate::accounts::AccountRefusal;

#[derive(Debug, thiserror::Error)]
pub enum DomainRefusal {
    #[error("fields are wrong")]
    Validation(Vec<FieldProblem>),
    #[error("no such domain")]
    NotFound,
    #[error("the owner has the domain already")]
    Exists,
    #[error("the owner has {most} domains, as many as one may have (`domains.per_server`); delete one first")]
    TooMany { most: usize },
    /// Too much of the kind runs at this moment, of the account or of all.
    #[error("too many domains are being added or checked at this moment; try again in a few seconds")]
    Busy,
    #[error("the domain is not verified")]
    NotVerified,
    /// A server's key may use it, not change it.
    #[error("the domain belongs to the account")]
    OfAccount,
    /// The owner is unknown, or not the actor's.
    #[error(transparent)]
    Account(AccountRefusal),
    #[error(transparent)]
    Store(StoreError),
}

impl From<AccountRefusal> for DomainRefusal {
    fn from(refusal: AccountRefusal) -> Self {
        Self::Account(refusal)
    }
}

/// Verbs about one domain say `NotFound` when it is not there.
impl From<StoreError> for DomainRefusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            StoreError::Conflict => Self::Exists,
            other => Self::Store(other),
        }
    }
}
