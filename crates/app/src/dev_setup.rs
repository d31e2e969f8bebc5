//! Setup of `postroad dev`: an account, a live server, a verified domain and a fresh key.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{CredentialId, DomainName, Scope, ServerMode};
use postroad_store::{Credential, DomainOwner, NewCredential, NewServer, Server};

use crate::App;
use crate::admin::AdminError;
use crate::domains::ImportedDkimKey;
use crate::secrets::KeyPair;

const NAME: &str = "dev";
const DOMAIN: &str = "example.test";

/// Names and key of a development installation.
pub struct DevSetup {
    pub api_key: String,
    pub api_secret: String,
    pub domain: DomainName,
    pub server_name: String,
    pub credential_id: CredentialId,
    pub credential_name: String,
}

impl std::fmt::Debug for DevSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DevSetup").field("domain", &self.domain).finish_non_exhaustive()
    }
}

#[boxed_futures]
impl App {
    /// Creates what is missing, and a new key, because old ones cannot be shown again. Revokes the keys of all
    /// earlier starts.
    pub async fn dev_setup(&self) -> Result<DevSetup, AdminError> {
        self.dev_setup_revoking(|key| key.name == NAME).await
    }

    /// The same for a database shared with other processes: revokes only the key of this process's earlier
    /// start.
    pub async fn dev_setup_beside_others(
        &self,
        previous: Option<CredentialId>,
    ) -> Result<DevSetup, AdminError> {
        self.dev_setup_revoking(|key| key.name == NAME && Some(key.id) == previous).await
    }

    async fn dev_setup_revoking(&self, is_old: impl Fn(&Credential) -> bool) -> Result<DevSetup, AdminError> {
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
            if key.id != newest && key.revoked_at.is_none() && is_old(&key) {
                self.inner.store.revoke_credential(key.id).await?;
            }
        }
        self.forget_setup();
        Ok(DevSetup {
            api_key: pair.api_key,
            api_secret: pair.api_secret,
            domain,
            server_name: server.name,
            credential_id: newest,
            credential_name: NAME.to_owned(),
        })
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
