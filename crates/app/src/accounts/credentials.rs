//! Credentials of an account's servers. Key and secret are shown only when they are created.

use std::time::Duration;

use ipnet::IpNet;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{Change, CredentialId, Scope, ServerId, Timestamp};
use postroad_store::{
    AuditSubject, Credential, CredentialChange, CredentialFilter, NewCredential, StoreError, UpdateResult,
};

use super::recording::{Created, CreationKey};
use super::{AccountRefusal, ObjectKind, Requester, page};
use crate::App;
use crate::access::{Actor, Operation, permit, permit_any};
use crate::secrets::KeyPair;

const NETWORKS_MAX: usize = 100;
/// Maximum number of valid credentials of one server. A server that has as many can rotate them, but not create more.
const CREDENTIALS_MAX: usize = 1_000;
/// Longest time that the old key stays valid after a rotation.
const GRACE_MAX: Duration = Duration::from_hours(30 * 24);

#[derive(Debug, Clone)]
pub struct NewCredentialRequest {
    pub server: ServerId,
    pub name: String,
    pub scope: Scope,
    pub test: bool,
    pub hold: bool,
    pub allow: Vec<IpNet>,
    pub expires_at: Option<Timestamp>,
    /// User name in the form of an e-mail address, for SMTP programs that require one.
    pub login: Option<String>,
    pub idempotency_key: Option<CreationKey>,
}

#[derive(Debug, Clone, Default)]
pub struct CredentialChangeRequest {
    pub if_version: Option<i64>,
    pub name: Option<String>,
    pub allow: Option<Vec<IpNet>>,
    pub hold: Option<bool>,
    pub expires_at: Change<Timestamp>,
}

/// A credential. Its key and secret are absent if an earlier call with the same idempotency key created it.
pub struct CreatedCredential {
    pub credential: Credential,
    pub api_key: Option<String>,
    pub api_secret: Option<String>,
}

impl std::fmt::Debug for CreatedCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedCredential").field("id", &self.credential.id).finish_non_exhaustive()
    }
}

#[boxed_futures]
impl App {
    /// Refuses one more credential beyond `CREDENTIALS_MAX`. Concurrent calls may exceed the limit: it need not be
    /// exact.
    async fn check_credential_count(&self, server_id: ServerId) -> Result<(), AccountRefusal> {
        if self.inner.store.count_credentials(server_id, CREDENTIALS_MAX).await? < CREDENTIALS_MAX {
            return Ok(());
        }
        Err(AccountRefusal::problem("server", "has 1,000 credentials, the maximum: revoke some first"))
    }

    pub async fn create_credential(
        &self,
        by: &Requester,
        request: NewCredentialRequest,
    ) -> Result<Created<CreatedCredential>, AccountRefusal> {
        let operation = Operation::CredentialsCreate;
        let account_id = self.permitted_server(by, operation, request.server).await?.account_id;
        if let Some(id) = self.find_created_id(Some(account_id), request.idempotency_key.as_ref()).await? {
            let credential = self.permitted_credential(by, operation, CredentialId(id)).await?;
            let value = CreatedCredential { credential, api_key: None, api_secret: None };
            return Ok(Created { value, is_replay: true });
        }
        // Clients in the networks of an address key need no secret, so only the operator creates such a key, at the
        // command line.
        if request.scope == Scope::Address && by.actor != Actor::CommandLine {
            return Err(AccountRefusal::problem("scope", "should be `full`, `send` or `read`"));
        }
        check_name(&request.name)?;
        self.check_networks_and_expiry(Some(&request.allow), request.expires_at)?;
        self.check_credential_count(request.server).await?;
        let limits = self.limits_of_requesting_key(by).await?;
        let pair = KeyPair::generate();
        let (key_hash, secret_hash) = pair.hashes();
        let new = NewCredential {
            server_id: request.server,
            name: request.name.trim().to_owned(),
            key_hash,
            secret_hash,
            scope: request.scope,
            allow: limits.restrict_networks(request.allow)?,
            hold: request.hold,
            test: request.test,
            expires_at: limits.restrict_expiry(request.expires_at),
        };
        let subject = AuditSubject::NewCredential(key_hash);
        let key = request.idempotency_key.as_ref().map(|key| (account_id, key));
        let store = self.audited_store_for_creation(by, operation, subject, key);
        let created = match request.login {
            None => store.create_credential(new).await,
            Some(login) => store.create_credential_with_login(new, login).await,
        };
        // A concurrent call with the same idempotency key may have created the credential.
        if matches!(created, Err(StoreError::Conflict))
            && let Some(id) = self.find_created_id(Some(account_id), request.idempotency_key.as_ref()).await?
        {
            let credential = self.permitted_credential(by, operation, CredentialId(id)).await?;
            let value = CreatedCredential { credential, api_key: None, api_secret: None };
            return Ok(Created { value, is_replay: true });
        }
        let credential = created.map_err(AccountRefusal::from_store_error_on(ObjectKind::Credential))?;
        let KeyPair { api_key, api_secret } = pair;
        let value = CreatedCredential { credential, api_key: Some(api_key), api_secret: Some(api_secret) };
        Ok(Created { value, is_replay: false })
    }

    /// Returns a page ordered by id, and whether there are more.
    pub async fn list_credentials_as(
        &self,
        by: &Requester,
        filter: CredentialFilter,
        after: Option<CredentialId>,
        limit: usize,
    ) -> Result<(Vec<Credential>, bool), AccountRefusal> {
        let operation = Operation::CredentialsList;
        let account_id = self.listed_account(by, operation, filter.account_id).await?;
        if let Some(server_id) = filter.server_id {
            let server = self.permitted_server(by, operation, server_id).await?;
            if account_id.is_some_and(|id| id != server.account_id) {
                return Err(AccountRefusal::NotFound(ObjectKind::Server));
            }
        }
        let filter = CredentialFilter { account_id, ..filter };
        let found = self.inner.store.list_credentials_page(filter, after, limit + 1).await?;
        Ok(page(found, limit))
    }

    pub async fn find_credential_as(
        &self,
        by: &Requester,
        id: CredentialId,
    ) -> Result<Credential, AccountRefusal> {
        self.permitted_credential(by, Operation::CredentialsGet, id).await
    }

    pub async fn update_credential(
        &self,
        by: &Requester,
        id: CredentialId,
        request: CredentialChangeRequest,
    ) -> Result<Credential, AccountRefusal> {
        let operation = Operation::CredentialsUpdate;
        let credential = self.permitted_credential(by, operation, id).await?;
        request.name.as_deref().map(check_name).transpose()?;
        let expires_at = match request.expires_at {
            Change::Set(at) => Some(at),
            Change::Keep | Change::Clear => None,
        };
        self.check_networks_and_expiry(request.allow.as_deref(), expires_at)?;
        if credential.scope == Scope::Address {
            check_networks_of_address_key(by, &credential.allow, request.allow.as_deref())?;
        }
        let limits = self.limits_of_requesting_key(by).await?;
        let expires_at = match request.expires_at {
            Change::Keep => Change::Keep,
            changed => limits.restrict_expiry(changed.into_value()).into(),
        };
        let change = CredentialChange {
            name: request.name.map(|name| name.trim().to_owned()),
            allow: request.allow.map(|allow| limits.restrict_networks(allow)).transpose()?,
            hold: request.hold,
            expires_at,
        };
        let store = self.audited_store(by, operation, AuditSubject::Credential(id));
        let updated = store.update_credential(id, request.if_version, change).await;
        self.forget_setup();
        match updated {
            Ok(UpdateResult::Done(credential)) => Ok(credential),
            Ok(UpdateResult::OtherVersion(version)) => Err(AccountRefusal::OtherVersion(version)),
            Err(StoreError::NotFound) => Err(AccountRefusal::CredentialEnded),
            Err(other) => Err(other.into()),
        }
    }

    pub async fn revoke_credential_as(
        &self,
        by: &Requester,
        id: CredentialId,
    ) -> Result<Credential, AccountRefusal> {
        let operation = Operation::CredentialsRevoke;
        if self.permitted_credential(by, operation, id).await?.revoked_at.is_none() {
            let store = self.audited_store(by, operation, AuditSubject::Credential(id));
            store
                .revoke_credential(id)
                .await
                .map_err(AccountRefusal::from_store_error_on(ObjectKind::Credential))?;
            self.forget_setup();
        }
        self.permitted_credential(by, operation, id).await
    }

    /// Creates a credential with the rights of the old one, within the networks and expiry of the requesting key. The
    /// old credential stays valid for at most `grace`.
    pub async fn rotate_credential_as(
        &self,
        by: &Requester,
        id: CredentialId,
        grace: Duration,
    ) -> Result<CreatedCredential, AccountRefusal> {
        let operation = Operation::CredentialsRotate;
        let old = self.permitted_credential(by, operation, id).await?;
        let now = self.inner.clock.now();
        let is_expired = old.expires_at.is_some_and(|at| at <= now);
        if old.revoked_at.is_some() || old.replaced_by.is_some() || is_expired || old.scope == Scope::Address
        {
            return Err(AccountRefusal::CredentialEnded);
        }
        if grace > GRACE_MAX {
            return Err(AccountRefusal::problem("grace_s", "should be at most 30 days"));
        }
        let limits = self.limits_of_requesting_key(by).await?;
        let allow = limits.restrict_networks(old.allow).map_err(|_| {
            AccountRefusal::problem("id", "is of a credential with networks outside those of the calling key")
        })?;
        let pair = KeyPair::generate();
        let (key_hash, secret_hash) = pair.hashes();
        let new = NewCredential {
            server_id: old.server_id,
            name: old.name,
            key_hash,
            secret_hash,
            scope: old.scope,
            allow,
            hold: old.hold,
            test: old.test,
            expires_at: limits.restrict_expiry(old.expires_at),
        };
        let store = self.audited_store(by, operation, AuditSubject::Credential(id));
        let rotated = store.rotate_credential(id, now.plus(grace), new).await;
        self.forget_setup();
        let credential = rotated.map_err(|error| match error {
            StoreError::NotFound => AccountRefusal::CredentialEnded,
            other => other.into(),
        })?;
        let KeyPair { api_key, api_secret } = pair;
        Ok(CreatedCredential { credential, api_key: Some(api_key), api_secret: Some(api_secret) })
    }

    /// Finds a credential on which `by` may perform `operation`.
    async fn permitted_credential(
        &self,
        by: &Requester,
        operation: Operation,
        id: CredentialId,
    ) -> Result<Credential, AccountRefusal> {
        permit_any(&by.actor, operation).map_err(AccountRefusal::Denied)?;
        let found = self.inner.store.find_credential(id).await?;
        // Reads a server even if the credential is unknown, so that timing does not reveal other accounts' credentials.
        let server_id = found.as_ref().map_or(ServerId(0), |credential| credential.server_id);
        let server = self.inner.store.find_server(server_id).await?;
        let server = server.filter(|server| server.delete_at.is_none());
        let subject = self.server_subject(by, operation, server.as_ref()).await?;
        permit(&by.actor, operation, subject)
            .map_err(AccountRefusal::from_denial_on(ObjectKind::Credential))?;
        found.ok_or(AccountRefusal::NotFound(ObjectKind::Credential))
    }

    fn check_networks_and_expiry(
        &self,
        allow: Option<&[IpNet]>,
        expires_at: Option<Timestamp>,
    ) -> Result<(), AccountRefusal> {
        if allow.is_some_and(|allow| allow.len() > NETWORKS_MAX) {
            return Err(AccountRefusal::problem("allow", "should have at most 100 networks"));
        }
        if expires_at.is_some_and(|at| at <= self.inner.clock.now()) {
            return Err(AccountRefusal::problem("expires_at", "is in the past"));
        }
        Ok(())
    }
}

/// Only the operator changes the networks of an address key, because clients in these networks need no secret. At least
/// one network must remain.
fn check_networks_of_address_key(
    by: &Requester,
    current: &[IpNet],
    request: Option<&[IpNet]>,
) -> Result<(), AccountRefusal> {
    let Some(request) = request.filter(|request| *request != current) else { return Ok(()) };
    if !by.actor.is_operator() {
        return Err(AccountRefusal::problem(
            "allow",
            "of an address key is set by the operator of the service",
        ));
    }
    if request.is_empty() {
        return Err(AccountRefusal::problem(
            "allow",
            "should not be empty: the credential is recognised by its networks",
        ));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), AccountRefusal> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
        return Err(AccountRefusal::problem(
            "name",
            "should have 1 to 100 characters, and no control characters",
        ));
    }
    Ok(())
}
