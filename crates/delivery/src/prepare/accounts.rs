//! Accounts of servers, for `Feedback-ID`. A server never changes its account, so cached entries do not expire.

use std::collections::HashMap;

use parking_lot::Mutex;
use postroad_model::{AccountId, ServerId};
use postroad_store::{Store, StoreError};

const ENTRIES_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Accounts {
    known: Mutex<HashMap<ServerId, AccountId>>,
}

impl Accounts {
    /// The account of a server; 0 if the server no longer exists.
    pub(super) async fn find(&self, store: &Store, server_id: ServerId) -> Result<AccountId, StoreError> {
        if let Some(account_id) = self.known.lock().get(&server_id) {
            return Ok(*account_id);
        }
        let Some(server) = store.find_server(server_id).await? else { return Ok(AccountId(0)) };
        let mut known = self.known.lock();
        if known.len() >= ENTRIES_MAX {
            known.clear();
        }
        known.insert(server_id, server.account_id);
        Ok(server.account_id)
    }
}
