//! Refusals of operations on domains.

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
    #[error("the owner has {domains_max} domains, the maximum (`domains.per_server`); delete one first")]
    TooMany { domains_max: usize },
    /// Too many domains are being added, checked or given new keys, by this account or by all accounts.
    #[error("too many domains are being added or checked at this moment; try again in a few seconds")]
    Busy,
    #[error("the domain is not verified")]
    NotVerified,
    /// A requester who names a server, or uses a server's key, may use the domain but not change it.
    #[error("the domain belongs to the account")]
    OfAccount,
    /// For example, the requester lacks the permission, or the named owner is unknown or somebody else's.
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

/// For operations on one domain: `NotFound` means that the domain does not exist, `Conflict` that it exists already.
impl From<StoreError> for DomainRefusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            StoreError::Conflict => Self::Exists,
            other => Self::Store(other),
        }
    }
}
