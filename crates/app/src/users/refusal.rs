//! Refusals of sign-ins and of other operations on people.

use std::time::Duration;

use postroad_store::StoreError;

use crate::Refusal;
use crate::access::Denial;
use crate::accounts::AccountRefusal;

/// The texts are shown to the person.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UserRefusal {
    #[error("The e-mail address or the password is wrong")]
    WrongCredentials,
    #[error("The code is wrong or was used before")]
    WrongCode,
    /// The token of the password step was used, or is too old.
    #[error("The code was not entered in time, or this sign-in was finished before: sign in again")]
    CodeTooLate,
    #[error("There were too many attempts: try again in {} minutes", .retry_after.as_secs().div_ceil(60))]
    TooManyAttempts { retry_after: Duration },
    #[error("The link was used, replaced or is too old: ask for a new one")]
    LinkInvalid,
    #[error("The account is suspended")]
    AccountSuspended,
    /// The chosen password is not acceptable, for this reason.
    #[error("{0}")]
    Password(&'static str),
    #[error(
        "A person with this e-mail address exists already: sign in, or ask to be invited under another address"
    )]
    EmailTaken,
    #[error("An authenticator app is in use already: switch it off first")]
    TotpEnabled,
    #[error("No authenticator app is in use")]
    TotpDisabled,
    #[error("The service is busy: try again in a moment")]
    Busy,
    /// Such as an invalid field, or no permission.
    #[error("{0}")]
    Account(AccountRefusal),
    #[error("The service cannot do this at the moment: try again shortly")]
    Store(StoreError),
    /// The seed of the person's authenticator app cannot be unsealed, mostly because the node has another sealing key.
    /// The text tells what the operator has to do.
    #[error("{0}")]
    Sealed(crate::sealing::UnsealError),
}

impl From<StoreError> for UserRefusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<AccountRefusal> for UserRefusal {
    fn from(refusal: AccountRefusal) -> Self {
        match refusal {
            AccountRefusal::Store(error) => Self::Store(error),
            other => Self::Account(other),
        }
    }
}

impl From<Denial> for UserRefusal {
    fn from(denial: Denial) -> Self {
        Self::Account(AccountRefusal::Denied(denial))
    }
}

impl From<Refusal> for UserRefusal {
    fn from(refusal: Refusal) -> Self {
        Self::Account(refusal.into())
    }
}
