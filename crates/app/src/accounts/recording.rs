//! The audit entry and the idempotency key that are stored with a change.

use postroad_model::{AccountId, ServerId};
use postroad_store::{Audit, AuditSubject, Creation, INSTALLATION, NewCreation, Store};

use super::{AccountRefusal, Requester};
use crate::access::Operation;
use crate::{App, Refusal};

/// Idempotency key of a call that creates something, with a hash of the request.
#[derive(Debug, Clone)]
pub struct CreationKey {
    pub key: String,
    pub fingerprint: [u8; 32],
}

impl CreationKey {
    /// Adds the server to the key, so that several servers of an account may use the same key. Callers' keys contain no
    /// line breaks, so an account's key never equals a server's.
    #[must_use]
    pub(crate) fn of_server(self, id: ServerId) -> Self {
        Self { key: format!("server {id}\n{}", self.key), ..self }
    }
}

/// An object that was created by this call or, with the same idempotency key, by an earlier call.
#[derive(Debug, Clone)]
pub struct Created<T> {
    pub value: T,
    pub is_replay: bool,
}

impl App {
    /// The store, for one change that is recorded in the audit log.
    pub(crate) fn audited_store(&self, by: &Requester, operation: Operation, subject: AuditSubject) -> Store {
        self.audited_store_for_creation(by, operation, subject, None)
    }

    /// Like `audited_store`, for a change that creates something. The idempotency key and its account are stored with
    /// the change.
    pub(crate) fn audited_store_for_creation(
        &self,
        by: &Requester,
        operation: Operation,
        subject: AuditSubject,
        creation: Option<(AccountId, &CreationKey)>,
    ) -> Store {
        let creation = creation.map(|(account_id, key)| NewCreation {
            account_id,
            key: key.key.clone(),
            fingerprint: key.fingerprint,
        });
        let (actor, address) = (by.actor.name(), by.address);
        self.inner.store.audited(Audit { actor, address, operation: operation.name(), subject, creation })
    }

    /// The id of the object that an earlier call with the same key created. Refuses a key that was used for another
    /// request. Keys of different accounts are independent; `account_id` is `None` for objects of the installation.
    pub(crate) async fn find_created_id(
        &self,
        account_id: Option<AccountId>,
        key: Option<&CreationKey>,
    ) -> Result<Option<i64>, AccountRefusal> {
        let Some(key) = key else { return Ok(None) };
        let account_id = account_id.unwrap_or(INSTALLATION);
        Ok(id_created_with(self.inner.store.find_creation(account_id, key.key.clone()).await?, key)?)
    }

    /// Like `find_created_id`, for an object of a server; `key` is made by `CreationKey::of_server`.
    pub(crate) async fn find_created_id_on_server(
        &self,
        account_id: AccountId,
        key: Option<&CreationKey>,
    ) -> Result<Option<i64>, Refusal> {
        let Some(key) = key else { return Ok(None) };
        id_created_with(self.inner.store.find_creation(account_id, key.key.clone()).await?, key)
    }
}

fn id_created_with(found: Option<Creation>, key: &CreationKey) -> Result<Option<i64>, Refusal> {
    match found {
        None => Ok(None),
        Some(Creation { fingerprint, subject_id }) if fingerprint == key.fingerprint => Ok(Some(subject_id)),
        Some(_) => Err(Refusal::IdempotencyConflict),
    }
}
