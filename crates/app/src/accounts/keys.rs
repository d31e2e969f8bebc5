//! API keys of accounts and of the operator. A key is shown only when it is created.

use ipnet::IpNet;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, AccountKeyId, AccountScope, Timestamp};
use postroad_store::{AccountKey, AccountKeyOwner, AuditSubject, NewAccountKey};

use super::{AccountRefusal, Requester, Thing, page};
use crate::App;
use crate::access::{Actor, Operation, Subject, permit};
use crate::secrets::{hash, new_key};

const NAME_BYTES_MAX: usize = 100;
const SCOPES_MAX: usize = 20;
const NETWORKS_MAX: usize = 100;

/// A key to be, not checked yet.
#[derive(Debug, Clone, Default)]
pub struct AccountKeyRequest {
    pub name: String,
    /// Empty for `full`.
    pub scopes: Vec<AccountScope>,
    pub allow: Vec<IpNet>,
    pub expires_at: Option<Timestamp>,
}

/// A new key with its clear text.
pub struct CreatedAccountKey {
    pub api_key: String,
    pub key: AccountKey,
}

impl std::fmt::Debug for CreatedAccountKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedAccountKey").field("id", &self.key.id).finish_non_exhaustive()
    }
}

#[boxed_futures]
impl App {
    pub async fn create_account_key(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        given: AccountKeyRequest,
    ) -> Result<CreatedAccountKey, AccountRefusal> {
        let account_id = self.account_of(by, Operation::AccountKeysCreate, account).await?;
        self.create_key_of(by, Operation::AccountKeysCreate, Some(account_id), given).await
    }

    /// A key that does everything an account key does, for all accounts, and creates accounts.
    pub async fn create_operator_key(
        &self,
        by: &Requester,
        given: AccountKeyRequest,
    ) -> Result<CreatedAccountKey, AccountRefusal> {
        permit(&by.actor, Operation::OperatorKeysCreate, Subject::Installation)
            .map_err(AccountRefusal::Denied)?;
        self.create_key_of(by, Operation::OperatorKeysCreate, None, given).await
    }

    /// In the order of their ids, and whether there are more.
    pub async fn list_account_keys(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        after: Option<AccountKeyId>,
        limit: usize,
    ) -> Result<(Vec<AccountKey>, bool), AccountRefusal> {
        let account_id = self.account_of(by, Operation::AccountKeysList, account).await?;
        self.list_keys_of(AccountKeyOwner::Account(account_id), after, limit).await
    }

    pub async fn list_operator_keys(
        &self,
        by: &Requester,
        after: Option<AccountKeyId>,
        limit: usize,
    ) -> Result<(Vec<AccountKey>, bool), AccountRefusal> {
        permit(&by.actor, Operation::OperatorKeysList, Subject::Installation)
            .map_err(AccountRefusal::Denied)?;
        self.list_keys_of(AccountKeyOwner::Operator, after, limit).await
    }

    pub async fn revoke_account_key(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        id: AccountKeyId,
    ) -> Result<AccountKey, AccountRefusal> {
        let account_id = self.account_of(by, Operation::AccountKeysRevoke, account).await?;
        self.revoke_key_of(by, Operation::AccountKeysRevoke, AccountKeyOwner::Account(account_id), id).await
    }

    pub async fn revoke_operator_key(
        &self,
        by: &Requester,
        id: AccountKeyId,
    ) -> Result<AccountKey, AccountRefusal> {
        permit(&by.actor, Operation::OperatorKeysRevoke, Subject::Installation)
            .map_err(AccountRefusal::Denied)?;
        self.revoke_key_of(by, Operation::OperatorKeysRevoke, AccountKeyOwner::Operator, id).await
    }

    async fn create_key_of(
        &self,
        by: &Requester,
        operation: Operation,
        account_id: Option<AccountId>,
        mut given: AccountKeyRequest,
    ) -> Result<CreatedAccountKey, AccountRefusal> {
        if given.scopes.is_empty() {
            given.scopes.push(AccountScope::Full);
        }
        given.scopes.sort_unstable();
        given.scopes.dedup();
        self.check_key(by, &given)?;
        let api_key = new_key();
        let key_hash = hash(&api_key);
        let new = NewAccountKey {
            account_id,
            name: given.name.trim().to_owned(),
            key_hash,
            scopes: given.scopes,
            allow: given.allow,
            expires_at: given.expires_at,
        };
        let store = self.recording(by, operation, AuditSubject::NewAccountKey(key_hash));
        let created = store.create_account_key(new).await;
        Ok(CreatedAccountKey { api_key, key: created.map_err(AccountRefusal::store(Thing::Account))? })
    }

    fn check_key(&self, by: &Requester, given: &AccountKeyRequest) -> Result<(), AccountRefusal> {
        let name = given.name.trim();
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(AccountRefusal::problem("name", "should have 1 to 100 characters"));
        }
        if given.scopes.len() > SCOPES_MAX || given.allow.len() > NETWORKS_MAX {
            return Err(AccountRefusal::problem("allow", "should have at most 100 networks"));
        }
        if given.expires_at.is_some_and(|at| at <= self.inner.clock.now()) {
            return Err(AccountRefusal::problem("expires_at", "is in the past"));
        }
        // Nobody makes a key that can do more than he can.
        let (Actor::AccountKey { scopes, .. } | Actor::OperatorKey { scopes, .. }) = &by.actor else {
            return Ok(());
        };
        if given.scopes.iter().all(|new| scopes.iter().any(|own| own.covers(*new))) {
            Ok(())
        } else {
            Err(AccountRefusal::problem("scopes", "should be among the scopes of the key that asks"))
        }
    }

    async fn list_keys_of(
        &self,
        owner: AccountKeyOwner,
        after: Option<AccountKeyId>,
        limit: usize,
    ) -> Result<(Vec<AccountKey>, bool), AccountRefusal> {
        let found = self.inner.store.list_account_keys(owner, after, limit + 1).await?;
        Ok(page(found, limit))
    }

    async fn revoke_key_of(
        &self,
        by: &Requester,
        operation: Operation,
        owner: AccountKeyOwner,
        id: AccountKeyId,
    ) -> Result<AccountKey, AccountRefusal> {
        let store = self.recording(by, operation, AuditSubject::AccountKey(id));
        let revoked = store.revoke_account_key(owner, id).await;
        self.forget_setup();
        revoked.map_err(AccountRefusal::store(Thing::AccountKey))
    }
}
