//! Operations on accounts, their keys, servers and credentials, and on the audit log. The HTTP API, the portal and the
//! command line call the same functions, which check the permission of the requester (`by`).

mod account;
mod audit;
mod audit_names;
mod ceilings;
mod credentials;
mod key_limits;
mod keys;
mod lifecycle;
mod recording;
mod refusal;
mod servers;

use std::net::IpAddr;

use postroad_model::AccountId;
use postroad_store::{Server, StoreError};

pub use account::AccountUsage;
pub use audit::AuditPosition;
pub(crate) use audit::audit_entry_json;
pub use audit_names::{ActorName, NamedAuditEntry, SubjectName};
pub use ceilings::AccountCeilingsRequest;
pub use credentials::{CreatedCredential, CredentialChangeRequest, NewCredentialRequest};
pub use keys::{AccountKeyRequest, CreatedAccountKey};
pub use lifecycle::AccountUpdateRequest;
pub use recording::{Created, CreationKey};
pub use refusal::{AccountRefusal, CallLimit, ObjectKind};
pub(crate) use servers::origin_of;
pub use servers::{NewServerRequest, ServerUpdateRequest};

use crate::App;
use crate::access::{Actor, Operation, Subject, permit, permit_any};

/// The actor of an operation, and the address it calls from.
#[derive(Debug, Clone)]
pub struct Requester {
    pub actor: Actor,
    /// `None` at the command line.
    pub address: Option<IpAddr>,
}

impl Requester {
    pub fn command_line() -> Self {
        Self { actor: Actor::CommandLine, address: None }
    }
}

impl App {
    /// The account that an operation acts on: the actor's own, or the `requested` one. Somebody else's account is
    /// refused like an account that does not exist.
    pub(crate) async fn permitted_account_id(
        &self,
        by: &Requester,
        operation: Operation,
        requested: Option<AccountId>,
    ) -> Result<AccountId, AccountRefusal> {
        permit_any(&by.actor, operation).map_err(AccountRefusal::Denied)?;
        let Some(id) = requested.or(by.actor.account_id()) else {
            return Err(AccountRefusal::missing("account"));
        };
        let subject = self.account_subject(by, operation, id).await?;
        permit(&by.actor, operation, subject).map_err(AccountRefusal::from_denial_on(ObjectKind::Account))?;
        Ok(id)
    }

    /// The subject for `permit` if an account owns the object. For the operator, `Absent` if the account does not
    /// exist, or is deleted and `operation` is a change. For other actors the account is not read: `permit` compares
    /// `id` with the actor's own account, and the keys and people of a deleted account have no access anyway.
    pub(crate) async fn account_subject(
        &self,
        by: &Requester,
        operation: Operation,
        id: AccountId,
    ) -> Result<Subject, StoreError> {
        if !by.actor.is_operator() {
            return Ok(Subject::Account(id));
        }
        let found = self.inner.store.find_account(id).await?;
        let is_present = found.is_some_and(|account| operation.is_read() || account.delete_at.is_none());
        Ok(if is_present { Subject::Account(id) } else { Subject::Absent })
    }

    /// The subject for `permit` if a server owns the object. `Absent` if `server` is `None`, and for a change if
    /// `account_subject` is `Absent`.
    pub(crate) async fn server_subject(
        &self,
        by: &Requester,
        operation: Operation,
        server: Option<&Server>,
    ) -> Result<Subject, StoreError> {
        let Some(&Server { id, account_id, .. }) = server else { return Ok(Subject::Absent) };
        if !operation.is_read() && self.account_subject(by, operation, account_id).await? == Subject::Absent {
            return Ok(Subject::Absent);
        }
        Ok(Subject::Server { id, account_id })
    }

    /// The account whose objects are listed. `None` for the objects of all accounts, which only the operator may list.
    pub(crate) async fn listed_account(
        &self,
        by: &Requester,
        operation: Operation,
        requested: Option<AccountId>,
    ) -> Result<Option<AccountId>, AccountRefusal> {
        if requested.is_none() && by.actor.is_operator() {
            permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)?;
            return Ok(None);
        }
        self.permitted_account_id(by, operation, requested).await.map(Some)
    }
}

/// Cuts `found`, which was read with `limit + 1`, to one page. Also returns whether there are more entries.
pub(crate) fn page<T>(mut found: Vec<T>, limit: usize) -> (Vec<T>, bool) {
    let has_more = found.len() > limit;
    found.truncate(limit);
    (found, has_more)
}
