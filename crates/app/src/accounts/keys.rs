//! API keys of accounts and of the operator. A key is shown only when it is created.

use ipnet::IpNet;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, AccountKeyId, AccountScope, Timestamp};
use postroad_store::{
    AccountKey, AccountKeyFilter, AccountKeyOwner, AuditSubject, INSTALLATION, NewAccountKey,
};

use super::recording::{Created, CreationKey};
use super::{AccountRefusal, ObjectKind, Requester, page};
use crate::App;
use crate::access::{Actor, Operation, Subject, permit};
use crate::secrets::{hash, new_key};

const NAME_CHARS_MAX: usize = 100;
const SCOPES_MAX: usize = 20;
const NETWORKS_MAX: usize = 100;

/// Request for a key, not checked yet.
#[derive(Debug, Clone, Default)]
pub struct AccountKeyRequest {
    pub name: String,
    /// Empty for the scope `full`.
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
        request: AccountKeyRequest,
    ) -> Result<CreatedAccountKey, AccountRefusal> {
        let account_id = self.permitted_account_id(by, Operation::AccountKeysCreate, account).await?;
        self.create_key_of(by, Operation::AccountKeysCreate, Some(account_id), request, None).await
    }

    /// Creates an account key, with an idempotency key. Returns no clear text if an earlier call created the account
    /// key.
    pub async fn create_account_key_once(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        request: AccountKeyRequest,
        creation: Option<&CreationKey>,
    ) -> Result<Created<(Option<String>, AccountKey)>, AccountRefusal> {
        let operation = Operation::AccountKeysCreate;
        let account_id = self.permitted_account_id(by, operation, account).await?;
        if let Some(earlier) = self.find_key_created_before(Some(account_id), creation).await? {
            return Ok(earlier);
        }
        match self.create_key_of(by, operation, Some(account_id), request, creation).await {
            Ok(new) => Ok(Created { value: (Some(new.api_key), new.key), is_replay: false }),
            // A concurrent call with the same idempotency key may have created the API key.
            Err(refusal @ AccountRefusal::Exists(_)) => {
                self.find_key_created_before(Some(account_id), creation).await?.ok_or(refusal)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// The key of an account, or of the operator, that an earlier call with the same idempotency key created.
    async fn find_key_created_before(
        &self,
        account_id: Option<AccountId>,
        creation: Option<&CreationKey>,
    ) -> Result<Option<Created<(Option<String>, AccountKey)>>, AccountRefusal> {
        let Some(id) = self.find_created_id(account_id, creation).await? else { return Ok(None) };
        let found = self.inner.store.find_account_key_by_id(AccountKeyId(id)).await?;
        let found = found.filter(|key| key.account_id == account_id);
        let key = found.ok_or(AccountRefusal::NotFound(ObjectKind::AccountKey))?;
        Ok(Some(Created { value: (None, key), is_replay: true }))
    }

    /// Creates an operator key. Such a key works like an account key of every account, and also for the operator's own
    /// operations.
    pub async fn create_operator_key(
        &self,
        by: &Requester,
        request: AccountKeyRequest,
    ) -> Result<CreatedAccountKey, AccountRefusal> {
        permit(&by.actor, Operation::OperatorKeysCreate, Subject::Installation)
            .map_err(AccountRefusal::Denied)?;
        self.create_key_of(by, Operation::OperatorKeysCreate, None, request, None).await
    }

    /// Creates an operator key, with an idempotency key. Returns no clear text if an earlier call created the operator
    /// key.
    pub async fn create_operator_key_once(
        &self,
        by: &Requester,
        request: AccountKeyRequest,
        creation: Option<&CreationKey>,
    ) -> Result<Created<(Option<String>, AccountKey)>, AccountRefusal> {
        let operation = Operation::OperatorKeysCreate;
        permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)?;
        if let Some(earlier) = self.find_key_created_before(None, creation).await? {
            return Ok(earlier);
        }
        match self.create_key_of(by, operation, None, request, creation).await {
            Ok(new) => Ok(Created { value: (Some(new.api_key), new.key), is_replay: false }),
            // A concurrent call with the same idempotency key may have created the API key.
            Err(refusal @ AccountRefusal::Exists(_)) => {
                self.find_key_created_before(None, creation).await?.ok_or(refusal)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Returns a page ordered by id, and whether there are more.
    pub async fn list_account_keys(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        filter: AccountKeyFilter,
        after: Option<AccountKeyId>,
        limit: usize,
    ) -> Result<(Vec<AccountKey>, bool), AccountRefusal> {
        let account_id = self.permitted_account_id(by, Operation::AccountKeysList, account).await?;
        self.list_keys_of(AccountKeyOwner::Account(account_id), filter, after, limit).await
    }

    pub async fn list_operator_keys(
        &self,
        by: &Requester,
        after: Option<AccountKeyId>,
        limit: usize,
    ) -> Result<(Vec<AccountKey>, bool), AccountRefusal> {
        permit(&by.actor, Operation::OperatorKeysList, Subject::Installation)
            .map_err(AccountRefusal::Denied)?;
        self.list_keys_of(AccountKeyOwner::Operator, AccountKeyFilter::default(), after, limit).await
    }

    pub async fn revoke_account_key(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        id: AccountKeyId,
    ) -> Result<AccountKey, AccountRefusal> {
        let account_id = self.permitted_account_id(by, Operation::AccountKeysRevoke, account).await?;
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
        mut request: AccountKeyRequest,
        creation: Option<&CreationKey>,
    ) -> Result<CreatedAccountKey, AccountRefusal> {
        if request.scopes.is_empty() {
            request.scopes.push(AccountScope::Full);
        }
        request.scopes.sort_unstable();
        request.scopes.dedup();
        self.check_key(by, &request)?;
        let limits = self.limits_of_requesting_key(by).await?;
        let api_key = new_key();
        let key_hash = hash(&api_key);
        let new = NewAccountKey {
            account_id,
            name: request.name.trim().to_owned(),
            key_hash,
            scopes: request.scopes,
            allow: limits.restrict_networks(request.allow)?,
            expires_at: limits.restrict_expiry(request.expires_at),
        };
        let subject = AuditSubject::NewAccountKey(key_hash);
        let creation = creation.map(|key| (account_id.unwrap_or(INSTALLATION), key));
        let store = self.audited_store_for_creation(by, operation, subject, creation);
        let created = store.create_account_key(new).await;
        Ok(CreatedAccountKey {
            api_key,
            key: created.map_err(AccountRefusal::from_store_error_on(ObjectKind::Account))?,
        })
    }

    fn check_key(&self, by: &Requester, request: &AccountKeyRequest) -> Result<(), AccountRefusal> {
        let name = request.name.trim();
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            return Err(AccountRefusal::problem(
                "name",
                "should have 1 to 100 characters, and no control characters",
            ));
        }
        if request.scopes.len() > SCOPES_MAX {
            return Err(AccountRefusal::problem("scopes", "should have at most 20 scopes"));
        }
        if request.allow.len() > NETWORKS_MAX {
            return Err(AccountRefusal::problem("allow", "should have at most 100 networks"));
        }
        if request.expires_at.is_some_and(|at| at <= self.inner.clock.now()) {
            return Err(AccountRefusal::problem("expires_at", "is in the past"));
        }
        // A key cannot create a key with more rights than its own.
        let (Actor::AccountKey { scopes, .. } | Actor::OperatorKey { scopes, .. }) = &by.actor else {
            return Ok(());
        };
        if request.scopes.iter().all(|new| scopes.iter().any(|own| own.covers(*new))) {
            Ok(())
        } else {
            Err(AccountRefusal::problem("scopes", "should be among the scopes of the calling key"))
        }
    }

    async fn list_keys_of(
        &self,
        owner: AccountKeyOwner,
        filter: AccountKeyFilter,
        after: Option<AccountKeyId>,
        limit: usize,
    ) -> Result<(Vec<AccountKey>, bool), AccountRefusal> {
        let found = self.inner.store.list_account_keys(owner, filter, after, limit + 1).await?;
        Ok(page(found, limit))
    }

    async fn revoke_key_of(
        &self,
        by: &Requester,
        operation: Operation,
        owner: AccountKeyOwner,
        id: AccountKeyId,
    ) -> Result<AccountKey, AccountRefusal> {
        // Only the owner's keys are searched, so that the time of the answer does not reveal somebody else's key.
        let before = Some(AccountKeyId(id.0.saturating_sub(1)));
        let found = self.inner.store.list_account_keys(owner, AccountKeyFilter::default(), before, 1).await?;
        if found.first().is_none_or(|key| key.id != id) {
            return Err(AccountRefusal::NotFound(ObjectKind::AccountKey));
        }
        let store = self.audited_store(by, operation, AuditSubject::AccountKey(id));
        let revoked = store.revoke_account_key(owner, id).await;
        self.forget_setup();
        revoked.map_err(AccountRefusal::from_store_error_on(ObjectKind::AccountKey))
    }
}
