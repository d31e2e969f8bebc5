//! Message searches that a person has saved, for each server.

use postroad_boxed_futures::boxed_futures;
use postroad_model::SavedSearchId;
use postroad_store::{AuditSubject, NewSavedSearch, SavedSearch, StoreError};

use super::profile::own_requester;
use super::{SignedInPerson, UserRefusal, parse_person_name};
use crate::access::Operation;
use crate::accounts::AccountRefusal;
use crate::{App, Caller};

/// Maximum number of searches of one person for one server.
const SEARCHES_MAX: usize = 20;
const QUERY_BYTES_MAX: usize = 1_000;

#[boxed_futures]
impl App {
    /// Searches of the person for the caller's server, in the order they were saved.
    pub async fn list_saved_searches(
        &self,
        person: &SignedInPerson,
        caller: &Caller,
    ) -> Result<Vec<SavedSearch>, UserRefusal> {
        own_requester(person, Operation::PersonSearches)?;
        let store = &self.inner.store;
        Ok(store.list_saved_searches(person.user.id, caller.server_id, SEARCHES_MAX).await?)
    }

    /// Saves a search under a name. `query` is the query string of the page that shows the search.
    pub async fn save_search(
        &self,
        person: &SignedInPerson,
        caller: &Caller,
        name: &str,
        query: &str,
    ) -> Result<(), UserRefusal> {
        let operation = Operation::PersonSaveSearch;
        let by = own_requester(person, operation)?;
        let name = parse_person_name(name)?;
        if name.is_empty() {
            return Err(AccountRefusal::problem("name", "should not be empty").into());
        }
        if query.len() > QUERY_BYTES_MAX {
            return Err(AccountRefusal::problem("query", "should have at most 1,000 bytes").into());
        }
        let (user_id, server_id) = (person.user.id, caller.server_id);
        let new = NewSavedSearch { user_id, server_id, name, query: query.to_owned() };
        let store = self.audited_store(&by, operation, AuditSubject::User(user_id));
        match store.save_search(new, SEARCHES_MAX).await {
            Err(StoreError::LimitReached) => {
                let text = "cannot be saved: you have 20 searches already; forget one first";
                Err(AccountRefusal::problem("name", text).into())
            }
            saved => Ok(saved?),
        }
    }

    /// Deletes a saved search; no error if it was already deleted.
    pub async fn forget_search(&self, person: &SignedInPerson, id: SavedSearchId) -> Result<(), UserRefusal> {
        let operation = Operation::PersonForgetSearch;
        let by = own_requester(person, operation)?;
        let store = self.audited_store(&by, operation, AuditSubject::User(person.user.id));
        match store.forget_search(person.user.id, id).await {
            Err(StoreError::NotFound) => Ok(()),
            forgotten => Ok(forgotten?),
        }
    }
}
