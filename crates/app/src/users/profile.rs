//! A signed-in person's own name, password and sessions.

use postroad_boxed_futures::boxed_futures;
use postroad_model::UserSessionId;
use postroad_store::{AuditSubject, Store, StoreError, User, UserChange, UserSession, UserUpdateResult};

use super::password::{self, PASSWORD_BYTES_MAX, normalise};
use super::{SignedInPerson, UserRefusal, parse_person_name};
use crate::App;
use crate::access::{Operation, Subject, permit};
use crate::accounts::{AccountRefusal, ObjectKind, Requester};

/// Maximum number of sessions that are listed: more than a person can have.
const SESSIONS_LISTED_MAX: usize = 100;

#[boxed_futures]
impl App {
    pub async fn rename_self(&self, person: &SignedInPerson, name: &str) -> Result<User, UserRefusal> {
        let by = own_requester(person, Operation::PersonUpdate)?;
        let change = UserChange { name: Some(parse_person_name(name)?), ..UserChange::default() };
        let store = self.audited_store(&by, Operation::PersonUpdate, AuditSubject::User(person.user.id));
        match store.update_user(person.user.id, None, change).await? {
            UserUpdateResult::Done(user) => Ok(*user),
            UserUpdateResult::LastOwner | UserUpdateResult::OtherVersion(_) => Err(UserRefusal::Busy),
        }
    }

    /// Changes the password; needs the old password, unless the person has none. Ends the person's other sessions.
    pub async fn change_password(
        &self,
        person: &SignedInPerson,
        old: &str,
        new: &str,
    ) -> Result<User, UserRefusal> {
        let by = own_requester(person, Operation::PersonChangePassword)?;
        let user = &person.user;
        if user.password_hash.is_some() {
            let attempt = self.count_sign_in(&user.email, Some(user.id), person.address).await?;
            let is_long = old.len() > PASSWORD_BYTES_MAX;
            let old = if is_long { String::new() } else { normalise(old) };
            if !self.inner.password_hasher.verify(old, user.password_hash.clone()).await? {
                return Err(UserRefusal::WrongCredentials);
            }
            self.forgive_sign_in(attempt).await?;
        }
        let password_hash = self.hash_new_password(new, &user.email).await?;
        let store = self.audited_store(&by, Operation::PersonChangePassword, AuditSubject::User(user.id));
        Ok(store.set_user_password(user.id, password_hash, Some(person.session.id)).await?)
    }

    /// The person's sessions, newest first.
    pub async fn list_own_sessions(&self, person: &SignedInPerson) -> Result<Vec<UserSession>, UserRefusal> {
        own_requester(person, Operation::PersonSessions)?;
        let store = &self.inner.store;
        Ok(store.list_user_sessions(person.user.id, self.idle_cutoff(), None, SESSIONS_LISTED_MAX).await?)
    }

    pub async fn revoke_own_session(
        &self,
        person: &SignedInPerson,
        id: UserSessionId,
    ) -> Result<(), UserRefusal> {
        match self.store_ending_own_sessions(person)?.end_user_session(person.user.id, id).await {
            Err(StoreError::NotFound) => Err(AccountRefusal::NotFound(ObjectKind::Session).into()),
            ended => Ok(ended?),
        }
    }

    /// Ends all sessions of the person but this one; returns their number.
    pub async fn revoke_other_sessions(&self, person: &SignedInPerson) -> Result<u64, UserRefusal> {
        let store = self.store_ending_own_sessions(person)?;
        Ok(store.end_user_sessions(person.user.id, Some(person.session.id)).await?)
    }

    /// The store, for ending sessions of the person; records that in the audit log.
    fn store_ending_own_sessions(&self, person: &SignedInPerson) -> Result<Store, UserRefusal> {
        let operation = Operation::PersonRevokeSession;
        let by = own_requester(person, operation)?;
        Ok(self.audited_store(&by, operation, AuditSubject::User(person.user.id)))
    }

    /// Checks a chosen password and hashes it.
    pub(super) async fn hash_new_password(&self, password: &str, email: &str) -> Result<String, UserRefusal> {
        let checked = password::check_new_password(password, email).map_err(UserRefusal::Password)?;
        self.inner.password_hasher.hash(checked).await
    }
}

/// The person as requester; refuses if the person may not perform `operation`.
pub(super) fn own_requester(person: &SignedInPerson, operation: Operation) -> Result<Requester, UserRefusal> {
    let by = person.requester();
    permit(&by.actor, operation, Subject::Account(person.user.account_id))?;
    Ok(by)
}
