//! Setup of `postroad dev`: an account, a live server, a verified domain, keys, and a link that signs in to the portal.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::OnceLock;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, AccountKeyId, CredentialId, DomainName, Scope, ServerMode};
use postroad_store::{
    AccountKeyFilter, AccountKeyOwner, Credential, DomainOwner, KeyHash, NewCredential, NewServer, Server,
};

use crate::App;
use crate::accounts::{AccountKeyRequest, Requester};
use crate::admin::AdminError;
use crate::domains::DkimKeyRequest;
use crate::secrets::{KeyPair, hash};

/// Name of the account, the server and the keys.
const NAME: &str = "dev";
/// Verified domain of the development server.
pub const DEV_DOMAIN: &str = "example.test";
/// Name of credentials whose key the caller chose. They stay valid over restarts.
const FIXED_CREDENTIAL_NAME: &str = "dev-fixed";
const FIXED_KEY_CHARS_MAX: usize = 100;

/// Maximum number of account keys, and of operator keys, of earlier starts that one start revokes.
const OLD_KEYS_MAX: usize = 1_000;

/// Options of `postroad dev`, set once while it starts.
#[derive(Debug, Default)]
pub(crate) struct DevOptions {
    /// Key for SMTP clients that submit without authentication.
    key: OnceLock<KeyHash>,
    any_from: OnceLock<()>,
    /// Token of the link that signs in.
    sign_in_token: OnceLock<String>,
}

impl DevOptions {
    pub(crate) fn key(&self) -> Option<KeyHash> {
        self.key.get().copied()
    }

    pub(crate) fn sign_in_token(&self) -> Option<&str> {
        self.sign_in_token.get().map(String::as_str)
    }

    /// Sets the token of the link that signs in. Later calls are ignored.
    pub(crate) fn set_sign_in_token(&self, token: &str) {
        self.sign_in_token.get_or_init(|| token.to_owned());
    }

    pub(crate) fn accepts_any_from(&self) -> bool {
        self.any_from.get().is_some()
    }
}

/// Request for the setup of `postroad dev`.
#[derive(Clone, Default)]
pub struct DevSetupRequest {
    /// The API key, instead of a new one.
    pub api_key: Option<String>,
    /// For a database that several processes of `postroad dev` share: keys of the previous start on the same data
    /// folder. Only these are revoked, not the keys of all earlier starts.
    pub previous: Option<DevKeyIds>,
}

/// Names and keys of a development installation.
pub struct DevSetup {
    pub api_key: String,
    pub api_secret: String,
    pub account_api_key: String,
    pub operator_api_key: String,
    /// Link that signs in to the portal; it works several times, for 30 days.
    pub sign_in_url: String,
    pub domain: DomainName,
    pub server_name: String,
    pub credential_name: String,
    pub key_ids: DevKeyIds,
}

/// Ids of the keys that one start created, written as `1 2 3`. The default means that no keys were created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevKeyIds {
    pub credential: CredentialId,
    pub account_key: AccountKeyId,
    pub operator_key: AccountKeyId,
}

impl Default for DevKeyIds {
    fn default() -> Self {
        // No key has the id 0.
        let none = AccountKeyId(0);
        Self { credential: CredentialId(0), account_key: none, operator_key: none }
    }
}

impl fmt::Display for DevKeyIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.credential, self.account_key, self.operator_key)
    }
}

impl FromStr for DevKeyIds {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // An earlier version wrote only the first id. Missing ids become 0, which no key has.
        let ids: Vec<i64> = text.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let id = |at: usize| ids.get(at).copied().unwrap_or(0);
        Ok(Self {
            credential: CredentialId(id(0)),
            account_key: AccountKeyId(id(1)),
            operator_key: AccountKeyId(id(2)),
        })
    }
}

impl fmt::Debug for DevSetupRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevSetupRequest").field("previous", &self.previous).finish_non_exhaustive()
    }
}

impl fmt::Debug for DevSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevSetup").field("domain", &self.domain).finish_non_exhaustive()
    }
}

#[boxed_futures]
impl App {
    /// Creates the account, the server and the domain if they are missing. Creates new keys, because old keys cannot be
    /// shown again. Revokes the keys of all earlier starts, except keys that the caller chose.
    pub async fn dev_setup(&self) -> Result<DevSetup, AdminError> {
        self.dev_setup_with(DevSetupRequest::default()).await
    }

    /// Accepts any From address from now on.
    pub fn accept_any_from(&self) {
        // Setting it twice changes nothing.
        let _ = self.inner.dev.any_from.set(());
    }

    /// Like `dev_setup`, with options.
    pub async fn dev_setup_with(&self, request: DevSetupRequest) -> Result<DevSetup, AdminError> {
        let previous = request.previous;
        let server = self.find_or_create_dev_server().await?;
        let domain = DomainName::parse(DEV_DOMAIN).expect("the constant is a domain name");
        if self.inner.store.find_domain(server.id, domain.clone()).await?.is_none() {
            let owner = DomainOwner::Server(server.id);
            let (key, is_verified) = (DkimKeyRequest::default(), true);
            let new = self.new_domain(owner, domain.clone(), key, is_verified).await;
            let new = new.map_err(|refusal| AdminError::refused(refusal.to_string()))?;
            self.inner.store.create_domain(new).await?;
        }
        let (pair, credential_id) = if let Some(api_key) = &request.api_key {
            let pair = fixed_pair(api_key)?;
            let id = self.find_or_create_fixed_credential(&server, &pair).await?;
            (pair, id)
        } else {
            let pair = KeyPair::generate();
            let created = self.inner.store.create_credential(new_credential(&server, NAME, &pair)).await?;
            (pair, created.id)
        };
        // A second key would belong to another start in the same process: keep the first.
        let _ = self.inner.dev.key.set(hash(&pair.api_key));
        for key in self.inner.store.list_credentials(Some(server.id)).await? {
            let is_old = key.name == NAME && previous.is_none_or(|ids| ids.credential == key.id);
            if key.id != credential_id && key.revoked_at.is_none() && is_old {
                self.inner.store.revoke_credential(key.id).await?;
            }
        }
        let (account_api_key, account_key) =
            self.create_dev_account_key(Some(server.account_id), previous.map(|ids| ids.account_key)).await?;
        let (operator_api_key, operator_key) =
            self.create_dev_account_key(None, previous.map(|ids| ids.operator_key)).await?;
        let email = format!("{NAME}@{DEV_DOMAIN}");
        let sign_in_url = self.dev_sign_in_url(server.account_id, &email, previous.is_none()).await;
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
            credential_name: if request.api_key.is_some() { FIXED_CREDENTIAL_NAME } else { NAME }.to_owned(),
            key_ids: DevKeyIds { credential: credential_id, account_key, operator_key },
        })
    }

    /// Finds the credential that an earlier start created for a key chosen by the caller, or creates this credential.
    async fn find_or_create_fixed_credential(
        &self,
        server: &Server,
        pair: &KeyPair,
    ) -> Result<CredentialId, AdminError> {
        let (key_hash, secret_hash) = pair.hashes();
        let Some(found) = self.inner.store.find_credential_access(key_hash).await? else {
            let created = self
                .inner
                .store
                .create_credential(new_credential(server, FIXED_CREDENTIAL_NAME, pair))
                .await?;
            return Ok(created.id);
        };
        let is_same = |credential: &Credential| {
            credential.server_id == server.id
                && credential.secret_hash == secret_hash
                && credential.revoked_at.is_none()
        };
        if is_same(&found.credential) {
            Ok(found.credential.id)
        } else {
            Err(AdminError::refused("--api-key: this key was revoked or has another purpose; choose another"))
        }
    }

    /// Creates a key of the account, or of the operator. Revokes the key `previous`, or else the keys of all earlier
    /// starts.
    async fn create_dev_account_key(
        &self,
        account_id: Option<AccountId>,
        previous: Option<AccountKeyId>,
    ) -> Result<(String, AccountKeyId), AdminError> {
        let owner = account_id.map_or(AccountKeyOwner::Operator, AccountKeyOwner::Account);
        let filter = AccountKeyFilter { name: Some(NAME.to_owned()), revoked: Some(false) };
        for key in self.inner.store.list_account_keys(owner, filter, None, OLD_KEYS_MAX).await? {
            if previous.is_none_or(|id| id == key.id) {
                self.inner.store.revoke_account_key(owner, key.id).await?;
            }
        }
        let by = Requester::command_line();
        let request = AccountKeyRequest { name: NAME.to_owned(), ..AccountKeyRequest::default() };
        let created = match account_id {
            Some(id) => self.create_account_key(&by, Some(id), request).await,
            None => self.create_operator_key(&by, request).await,
        };
        let created = created.map_err(|refusal| AdminError::refused(refusal.to_string()))?;
        Ok((created.api_key, created.key.id))
    }

    async fn find_or_create_dev_server(&self) -> Result<Server, AdminError> {
        let servers = self.inner.store.list_servers().await?;
        if let Some(server) = servers.into_iter().find(|s| s.account_name == NAME && s.name == NAME) {
            return Ok(server);
        }
        let accounts = self.inner.store.list_accounts().await?;
        let account = match accounts.into_iter().find(|account| account.name == NAME) {
            Some(account) => account,
            None => self.inner.store.create_account(NAME.to_owned()).await?,
        };
        let new = NewServer {
            account_id: account.id,
            name: NAME.to_owned(),
            mode: ServerMode::Live,
            pool_id: None,
        };
        Ok(self.inner.store.create_server(new).await?)
    }
}

fn new_credential(server: &Server, name: &str, pair: &KeyPair) -> NewCredential {
    let (key_hash, secret_hash) = pair.hashes();
    NewCredential {
        server_id: server.id,
        name: name.to_owned(),
        key_hash,
        secret_hash,
        scope: Scope::Full,
        allow: Vec::new(),
        hold: false,
        test: false,
        expires_at: None,
    }
}

/// Checks a key that the caller chose. The secret is derived from the key, so both stay the same at every start.
fn fixed_pair(api_key: &str) -> Result<KeyPair, AdminError> {
    let is_good = (1..=FIXED_KEY_CHARS_MAX).contains(&api_key.len())
        && api_key.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_good {
        return Err(AdminError::refused(format!(
            "--api-key must be 1 to {FIXED_KEY_CHARS_MAX} letters, digits or signs, without spaces"
        )));
    }
    let digest = hash(&format!("secret of the dev key {api_key}"));
    let mut api_secret = String::new();
    for byte in digest.0.iter().take(20) {
        write!(api_secret, "{byte:02x}").expect("writing to a String cannot fail");
    }
    Ok(KeyPair { api_key: api_key.to_owned(), api_secret })
}
