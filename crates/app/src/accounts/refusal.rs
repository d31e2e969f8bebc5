//! Refusals of operations on accounts and their objects.

use std::time::Duration;

use postroad_store::StoreError;

use crate::access::Denial;
use crate::{FieldProblem, Refusal};

/// Kind of object that an operation acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    Account,
    AccountKey,
    Server,
    Credential,
    User,
    Invitation,
    Session,
    IpPool,
    IpAddress,
}

impl ObjectKind {
    pub const ALL: [Self; 9] = [
        Self::Account,
        Self::AccountKey,
        Self::Server,
        Self::Credential,
        Self::User,
        Self::Invitation,
        Self::Session,
        Self::IpPool,
        Self::IpAddress,
    ];

    /// The name to use in a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::AccountKey => "API key",
            Self::Server => "server",
            Self::Credential => "credential",
            Self::User => "user",
            Self::Invitation => "invitation",
            Self::Session => "session",
            Self::IpPool => "IP pool",
            Self::IpAddress => "address",
        }
    }
}

/// State of a limit on calls per period, after a call was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimit {
    pub limit: u32,
    pub remaining: u32,
    pub resets_in: Duration,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum AccountRefusal {
    /// Wrong fields, a reached or exceeded ceiling, or an idempotency key that was used for another request.
    #[error("{}", .0.message())]
    Refused(Refusal),
    #[error("the actor may not do this")]
    Denied(Denial),
    /// The object does not exist, or belongs to somebody else.
    #[error("there is no such {}", .0.name())]
    NotFound(ObjectKind),
    #[error("this {} exists already", .0.name())]
    Exists(ObjectKind),
    /// The object was changed since the caller read it; carries its current version.
    #[error("the object was changed since it was read: its version is {0}")]
    OtherVersion(i64),
    #[error("the pool is in use: remove its addresses and give its servers another pool first")]
    PoolInUse,
    /// The credential cannot be rotated, because it is revoked, expired or replaced, or has the scope `address`, whose
    /// key nobody uses. Or the credential cannot be changed: it is revoked, or it is replaced and the change sets its
    /// expiry.
    #[error("the credential is revoked, expired, replaced or bound to addresses: create a new one instead")]
    CredentialEnded,
    /// The account would be left without an owner.
    #[error(
        "the last owner of an account cannot be removed or given another role: make somebody else an owner first"
    )]
    LastOwner,
    /// The account made too many calls of one kind, such as invitations. `limit` says when the account may call again.
    #[error("{}", .problem.message)]
    TooManyCalls { problem: Box<FieldProblem>, limit: CallLimit },
    /// The operator set the suspension or gate: an account cannot lift or replace it.
    #[error("the operator of the service set this suspension: only the operator can change it")]
    SetByOperator,
    #[error(transparent)]
    Store(StoreError),
}

impl AccountRefusal {
    /// Turns a denial into a refusal. An object that is absent or belongs to somebody else is reported as not found.
    pub(crate) fn from_denial_on(object: ObjectKind) -> impl FnOnce(Denial) -> Self {
        move |denial| match denial {
            Denial::NotFound => Self::NotFound(object),
            denial => Self::Denied(denial),
        }
    }

    pub(crate) fn from_store_error_on(object: ObjectKind) -> impl FnOnce(StoreError) -> Self {
        move |error| match error {
            StoreError::NotFound => Self::NotFound(object),
            StoreError::Conflict => Self::Exists(object),
            ceiling @ StoreError::CeilingReached { .. } => Self::Refused(ceiling.into()),
            other => Self::Store(other),
        }
    }

    pub(crate) fn problem(field: &str, text: &str) -> Self {
        let problem = FieldProblem::new(format!("/{field}"), format!("`{field}` {text}"));
        Self::Refused(Refusal::Validation(vec![problem]))
    }

    pub(crate) fn missing(field: &str) -> Self {
        Self::problem(field, "parameter is required but is missing")
    }
}

impl From<StoreError> for AccountRefusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refusal> for AccountRefusal {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
