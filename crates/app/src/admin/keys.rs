//! Admin commands for API keys. Key and secret are shown only when they are created.

use std::collections::HashMap;
use std::time::Duration;

use ipnet::IpNet;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{CredentialId, EmailAddress, Scope, Timestamp};
use postroad_store::{Credential, CredentialFilter};
use serde_json::{Value, json};

use super::{AdminError, error_naming, whole_list};
use crate::App;
use crate::accounts::{
    AccountRefusal, CreatedCredential, CredentialChangeRequest, NewCredentialRequest, Requester,
};

/// Maximum number of keys that one list shows.
const LISTED_MAX: usize = 100_000;

/// Request for an API key.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub server: String,
    pub name: String,
    pub scope: Scope,
    pub test: bool,
    pub hold: bool,
    pub allow: Vec<IpNet>,
    /// Networks whose clients submit without a secret. A key with such networks has no other use.
    pub address: Vec<IpNet>,
    /// User name in the form of an e-mail address, for SMTP programs that require one.
    pub login: Option<String>,
    pub expires_at: Option<Timestamp>,
}

#[boxed_futures]
impl App {
    pub async fn create_key(&self, new: NewKey) -> Result<Value, AdminError> {
        let is_by_address = !new.address.is_empty();
        if is_by_address && !new.allow.is_empty() {
            return Err(AdminError::refused("--address names the networks already: leave --allow out"));
        }
        let login = new.login.as_deref().map(check_login).transpose()?;
        if login.is_some() && is_by_address {
            return Err(AdminError::refused("--login needs a secret, and a key by --address has none"));
        }
        if login.is_some() && !new.scope.allows(Scope::Send) {
            return Err(AdminError::refused("--login is for SMTP, and a key with this scope may not send"));
        }
        let server = self.find_server(&new.server).await?;
        let object = format!("a key with the login {}", login.as_deref().unwrap_or_default());
        let request = NewCredentialRequest {
            server: server.id,
            name: new.name,
            scope: if is_by_address { Scope::Address } else { new.scope },
            test: new.test,
            hold: new.hold,
            allow: if is_by_address { new.address } else { new.allow },
            expires_at: new.expires_at,
            login,
            idempotency_key: None,
        };
        let created = self.create_credential(&Requester::command_line(), request).await;
        let created = created.map_err(error_naming(object))?.value;
        self.forget_setup();
        if is_by_address {
            // Key and secret of an address credential are never needed, so they are not shown.
            return self.key_json(&created.credential).await;
        }
        self.key_json_with_secret(&created).await
    }

    pub async fn list_keys(&self, server: Option<&str>) -> Result<Value, AdminError> {
        let server = match server {
            Some(name_or_id) => Some(self.find_server(name_or_id).await?),
            None => None,
        };
        let filter = CredentialFilter {
            server_id: server.as_ref().map(|server| server.id),
            ..CredentialFilter::default()
        };
        let found = self.list_credentials_as(&Requester::command_line(), filter, None, LISTED_MAX).await?;
        let credentials = whole_list(found, "keys", "credentials/list")?;
        let servers = match server {
            Some(server) => vec![server],
            None => self.inner.store.list_servers().await?,
        };
        let names: HashMap<_, _> = servers.into_iter().map(|server| (server.id, server.name)).collect();
        let logins: HashMap<_, _> = self.inner.store.list_logins().await?.into_iter().collect();
        Ok(credentials
            .iter()
            .map(|credential| {
                let mut answer = credential_json(credential, logins.get(&credential.id));
                answer["server"] = json!(names.get(&credential.server_id));
                answer
            })
            .collect())
    }

    pub async fn show_key(&self, id: CredentialId) -> Result<Value, AdminError> {
        self.key_json(&self.find_key(id).await?).await
    }

    pub async fn change_key(
        &self,
        id: CredentialId,
        request: CredentialChangeRequest,
    ) -> Result<Value, AdminError> {
        // Reports an unknown key in the same words as the other commands for keys.
        self.find_key(id).await?;
        let changed = self.update_credential(&Requester::command_line(), id, request).await?;
        self.key_json(&changed).await
    }

    pub async fn revoke_key(&self, id: CredentialId) -> Result<Value, AdminError> {
        let revoked = self.revoke_credential_as(&Requester::command_line(), id).await;
        self.key_json(&revoked.map_err(error_for_key(id))?).await
    }

    /// Creates a key with the rights of the old one, which stays valid for at most `grace_seconds`.
    pub async fn rotate_key(&self, id: CredentialId, grace_seconds: u64) -> Result<Value, AdminError> {
        let old = self.find_key(id).await?;
        if let Some(successor) = old.replaced_by {
            let text = format!("key {id} was replaced by key {successor} already: rotate that one");
            return Err(AdminError::Refused(text));
        }
        if old.scope == Scope::Address {
            return Err(AdminError::refused(format!(
                "key {id} is bound to addresses and has no secret to rotate: create another key, then revoke this one"
            )));
        }
        let is_expired = old.expires_at.is_some_and(|at| at <= self.inner.clock.now());
        if old.revoked_at.is_some() || is_expired {
            return Err(AdminError::refused(format!(
                "key {id} is revoked or expired: create a new one instead"
            )));
        }
        let grace = Duration::from_secs(grace_seconds);
        let rotated = self.rotate_credential_as(&Requester::command_line(), id, grace).await;
        let rotated = rotated.map_err(error_for_key(id))?;
        // Read the expiry back: the old key may expire before the grace period ends.
        let old_expires_at = self.find_key(id).await?.expires_at;
        let mut answer = self.key_json_with_secret(&rotated).await?;
        answer["replaces"] = json!(id);
        answer["replaced_expires_at"] = json!(old_expires_at.map(Timestamp::to_rfc3339));
        Ok(answer)
    }

    async fn find_key(&self, id: CredentialId) -> Result<Credential, AdminError> {
        self.find_credential_as(&Requester::command_line(), id).await.map_err(error_for_key(id))
    }

    /// A key as JSON, with the name of its server.
    async fn key_json(&self, credential: &Credential) -> Result<Value, AdminError> {
        let login = self.inner.store.find_login_of(credential.id).await?;
        let mut answer = credential_json(credential, login.as_ref());
        let server = self.inner.store.find_server(credential.server_id).await?;
        answer["server"] = server.map(|server| server.name).into();
        Ok(answer)
    }

    /// A new key as JSON, with the API key and the secret, which are shown only once.
    async fn key_json_with_secret(&self, created: &CreatedCredential) -> Result<Value, AdminError> {
        let CreatedCredential { credential, api_key, api_secret } = created;
        let rest = self.key_json(credential).await?;
        let mut answer = json!({ "id": credential.id, "api_key": api_key, "api_secret": api_secret });
        if let (Some(answer), Value::Object(rest)) = (answer.as_object_mut(), rest) {
            answer.extend(rest);
        }
        Ok(answer)
    }
}

/// Turns a refusal into an error. The error names the key if there is no such key.
fn error_for_key(id: CredentialId) -> impl FnOnce(AccountRefusal) -> AdminError {
    move |refusal| match refusal {
        AccountRefusal::NotFound(_) => {
            AdminError::Refused(format!("there is no key {id}; `postroad admin key list` shows them"))
        }
        other => other.into(),
    }
}

/// Checks a login and returns it in lower case: mail programs write names in any letter case.
fn check_login(text: &str) -> Result<String, AdminError> {
    let address = EmailAddress::parse(text).map_err(|error| {
        AdminError::Refused(format!("a login is written like an e-mail address: {error}"))
    })?;
    Ok(address.mailbox_key())
}

fn credential_json(credential: &Credential, login: Option<&String>) -> Value {
    let time = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
    json!({
        "id": credential.id,
        "name": credential.name,
        "login": login,
        "scope": credential.scope,
        "test": credential.test,
        "hold": credential.hold,
        "allow": credential.allow,
        "expires_at": time(credential.expires_at),
        "revoked_at": time(credential.revoked_at),
        "replaced_by": credential.replaced_by,
        "last_used_at": time(credential.last_used_at),
        "created_at": credential.created_at.to_rfc3339(),
    })
}
