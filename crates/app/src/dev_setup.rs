//! Setup of `postroad dev`: an account, a live server, a verified domain and a fresh key.

use std::fmt;
use std::str::FromStr;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, AccountKeyId, CredentialId, DomainName, Scope, ServerMode};
use postroad_store::{AccountKeyOwner, DomainOwner, NewCredential, NewServer, Server};

use crate::App;
use crate::accounts::{AccountKeyRequest, Requester};
use crate::admin::AdminError;
use crate::domains::ImportedDkimKey;
use crate::secrets::KeyPair;

const NAME: &str = "dev";
const DOMAIN: &str = "example.test";

/// Keys of earlier starts that are looked through; `dev` revokes them at every start, so there are few.
const OLD_KEYS_MAX: usize = 1_000;

/// Names and keys of a development installation.
pub struct DevSetup {
    pub api_key: String,
    pub api_secret: String,
    pub account_api_key: String,
    pub operator_api_key: String,
    /// Link that signs in to the portal as long as `dev` runs.
    pub sign_in_url: String,
    pub domain: DomainName,
    pub server_name: String,
    pub credential_name: String,
    pub key_ids: DevKeyIds,
}

/// The keys that one start made; written `1 2 3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevKeyIds {
    pub credential: CredentialId,
    pub account_key: AccountKeyId,
    pub operator_key: AccountKeyId,
}

impl fmt::Display for DevKeyIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.credential, self.account_key, self.operator_key)
    }
}

impl FromStr for DevKeyIds {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // An earlier version wrote the first id alone; no key has the id 0.
        let ids: Vec<i64> = text.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let id = |at: usize| ids.get(at).copied().unwrap_or(0);
        Ok(Self {
            credential: CredentialId(id(0)),
            account_key: AccountKeyId(id(1)),
            operator_key: AccountKeyId(id(2)),
        })
    }
}

impl fmt::Debug for DevSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevSetup").field("domain", &self.domain).finish_non_exhaustive()
    }
}

#[boxed_futures]
impl App {
    /// Creates what is missing, and new keys, because old ones cannot be shown again. Revokes the keys of all
    /// earlier starts.
    pub async fn dev_setup(&self) -> Result<DevSetup, AdminError> {
        self.dev_setup_revoking(None).await
    }

    /// The same for a database shared with other processes: revokes only the keys of this process's earlier
    /// start.
    pub async fn dev_setup_beside_others(&self, previous: Option<DevKeyIds>) -> Result<DevSetup, AdminError> {
        let none = AccountKeyId(0);
        let nothing = DevKeyIds { credential: CredentialId(0), account_key: none, operator_key: none };
        self.dev_setup_revoking(Some(previous.unwrap_or(nothing))).await
    }

    /// Revokes the keys `only`, or those of all earlier starts.
    async fn dev_setup_revoking(&self, only: Option<DevKeyIds>) -> Result<DevSetup, AdminError> {
        let server = self.dev_server().await?;
        let domain = DomainName::parse(DOMAIN).expect("the constant is a domain name");
        if self.inner.store.find_domain(server.id, domain.clone()).await?.is_none() {
            let owner = DomainOwner::Server(server.id);
            let new = self.new_domain(owner, domain.clone(), ImportedDkimKey::default(), true).await;
            let new = new.map_err(|refusal| AdminError::refused(refusal.to_string()))?;
            self.inner.store.create_domain(new).await?;
        }
        let pair = KeyPair::generate();
        let (key_hash, secret_hash) = pair.hashes();
        let credential = NewCredential {
            server_id: server.id,
            name: NAME.to_owned(),
            key_hash,
            secret_hash,
            scope: Scope::Full,
            allow: Vec::new(),
            hold: false,
            test: false,
            expires_at: None,
        };
        let newest = self.inner.store.create_credential(credential).await?;
        for key in self.inner.store.list_credentials(Some(server.id)).await? {
            let is_old = key.name == NAME && only.is_none_or(|only| only.credential == key.id);
            if key.id != newest && key.revoked_at.is_none() && is_old {
                self.inner.store.revoke_credential(key.id).await?;
            }
        }
        let (account_api_key, account_key) =
            self.dev_account_key(Some(server.account_id), only.map(|only| only.account_key)).await?;
        let (operator_api_key, operator_key) =
            self.dev_account_key(None, only.map(|only| only.operator_key)).await?;
        let email = format!("{NAME}@{DOMAIN}");
        let sign_in_url = self.dev_sign_in_url(server.account_id, &email, only.is_none()).await;
        let sign_in_url = sign_in_url.map_err(|refusal| AdminError::refused(refusal.to_string()))?;
        self.forget_setup();
        Ok(DevSetup {
            api_key: pair.api_key,
            api_secret: pair.api_secret,
            account_api_key,
            operator_api_key,
            sign_in_url,
            domain,
            server_name: server.name,
            credential_name: NAME.to_owned(),
            key_ids: DevKeyIds { credential: newest, account_key, operator_key },
        })
    }

    /// A new key of the account, or of the operator. Revokes the key `only`, or those of all earlier starts.
    async fn dev_account_key(
        &self,
        account_id: Option<AccountId>,
        only: Option<AccountKeyId>,
    ) -> Result<(String, AccountKeyId), AdminError> {
        let owner = account_id.map_or(AccountKeyOwner::Operator, AccountKeyOwner::Account);
        for key in self.inner.store.list_account_keys(owner, None, OLD_KEYS_MAX).await? {
            let is_old = key.name == NAME && only.is_none_or(|only| only == key.id);
            if key.revoked_at.is_none() && is_old {
                self.inner.store.revoke_account_key(owner, key.id).await?;
            }
        }
        let by = Requester::command_line();
        let given = AccountKeyRequest { name: NAME.to_owned(), ..AccountKeyRequest::default() };
        let created = match account_id {
            Some(id) => self.create_account_key(&by, Some(id), given).await,
            None => self.create_operator_key(&by, given).await,
        };
        let created = created.map_err(|refusal| AdminError::refused(refusal.to_string()))?;
        Ok((created.api_key, created.key.id))
    }

    async fn dev_server(&self) -> Result<Server, AdminError> {
        let servers = self.inner.store.list_servers().await?;
        if let Some(server) = servers.into_iter().find(|s| s.account_name == NAME && s.name == NAME) {
            return Ok(server);
        }
        let accounts = self.inner.store.list_accounts().await?;
        let account = match accounts.into_iter().find(|account| account.name == NAME) {
            Some(account) => account,
            None => self.inner.store.create_account(NAME.to_owned()).await?,
        };
        let new = NewServer { account_id: account.id, name: NAME.to_owned(), mode: ServerMode::Live };
        Ok(self.inner.store.create_server(new).await?)
    }
}
