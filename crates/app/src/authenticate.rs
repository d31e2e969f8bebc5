//! Authentication and authorisation by the key of a server, for the API and SMTP.

use std::net::IpAddr;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, CredentialId, ServerId, ServerMode};
use postroad_store::{AccountLimits, CredentialAccess, KeyHash, ServerTracking, StoreError};
use subtle::ConstantTimeEq;

use crate::App;
use crate::access::{Actor, Denial, Operation, Subject, permit};
use crate::accounts::Requester;
use crate::secrets::hash;

/// Origin of a call.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    pub address: IpAddr,
    /// Whether the call came over TLS.
    pub tls: bool,
}

/// Authenticated caller of an operation on one server: a key of this server, or a person.
#[derive(Debug, Clone)]
pub struct Caller {
    pub server_id: ServerId,
    pub account_id: AccountId,
    /// `None` for a person.
    pub credential_id: Option<CredentialId>,
    pub actor: Actor,
    pub mode: ServerMode,
    /// Whether everything sent with the credential is held.
    pub hold: bool,
    /// Whether the credential is a test key, so that everything sent with it is in test mode.
    pub test: bool,
    /// Whether From and Sender may be any address; only in `postroad dev`.
    pub any_from: bool,
    /// Hourly message limit of the server.
    pub hourly_limit: Option<u32>,
    /// Message limits of the account.
    pub account_limits: Option<AccountLimits>,
    /// Tracking defaults of the server, which its domains and messages can override.
    pub tracking: ServerTracking,
    pub peer: Peer,
}

/// Kind of an API key, by the header it comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    Server,
    Account,
    Operator,
}

/// Why a call is refused. Answer `Missing` and `Invalid` only after `delay`.
#[derive(Debug)]
pub enum AuthFailure {
    Missing {
        kind: KeyKind,
        delay: Duration,
    },
    Invalid {
        kind: KeyKind,
        delay: Duration,
    },
    /// The server of a server's key, or the account of that server, is suspended or deleted.
    Suspended,
    /// The account of an account's key is suspended or deleted.
    AccountSuspended,
    Denied(Denial),
    Store(StoreError),
}

impl Caller {
    pub fn requester(&self) -> Requester {
        Requester { actor: self.actor.clone(), address: Some(self.peer.address) }
    }
}

#[boxed_futures]
impl App {
    /// Checks an API key of a server for an operation on that server.
    pub async fn authenticate(
        &self,
        api_key: Option<&str>,
        peer: Peer,
        operation: Operation,
    ) -> Result<Caller, AuthFailure> {
        let Some(api_key) = api_key.filter(|key| !key.trim().is_empty()) else {
            let delay = self.inner.bad_keys.record_failure(peer.address).delay;
            return Err(AuthFailure::Missing { kind: KeyKind::Server, delay });
        };
        let access = self.find_access(hash(api_key)).await.map_err(AuthFailure::Store)?;
        let Some(access) = access.filter(|access| self.is_usable(access, peer.address)) else {
            let delay = self.inner.bad_keys.record_failure(peer.address).delay;
            return Err(AuthFailure::Invalid { kind: KeyKind::Server, delay });
        };
        self.admit(access, peer, operation)
    }

    /// Checks that an authenticated key may make the call.
    pub(crate) fn admit(
        &self,
        access: CredentialAccess,
        peer: Peer,
        operation: Operation,
    ) -> Result<Caller, AuthFailure> {
        if access.suspended_reason.is_some() {
            return Err(AuthFailure::Suspended);
        }
        let credential = access.credential;
        let (server_id, account_id) = (credential.server_id, access.account_id);
        let (scope, test) = (credential.scope, credential.test);
        let actor = Actor::ServerKey { id: credential.id, server_id, scope, test };
        let own = Subject::Server { id: server_id, account_id };
        permit(&actor, operation, own).map_err(AuthFailure::Denied)?;
        self.inner.used_credentials.record(credential.id, self.inner.clock.now());
        Ok(Caller {
            server_id,
            account_id,
            credential_id: Some(credential.id),
            actor,
            mode: access.mode,
            hold: credential.hold,
            test: credential.test,
            any_from: self.inner.dev.accepts_any_from(),
            hourly_limit: access.hourly_limit,
            account_limits: access.account_limits,
            tracking: access.tracking,
            peer,
        })
    }

    /// Finds the credential of a key, with its server and account.
    pub(crate) async fn find_access(
        &self,
        key_hash: KeyHash,
    ) -> Result<Option<CredentialAccess>, StoreError> {
        if let Some(access) = self.inner.access.find(&key_hash) {
            return Ok(Some(access));
        }
        let start = self.inner.access.start_read();
        let found = self.inner.store.find_credential_access(key_hash).await?;
        // The look-up was by hash; this comparison decides, in constant time.
        let found = found.filter(|access| access.credential.key_hash.0.ct_eq(&key_hash.0).into());
        if let Some(access) = &found {
            self.inner.access.put(key_hash, access.clone(), start);
        }
        Ok(found)
    }

    /// Whether the credential is valid now, for a client at this address.
    pub(crate) fn is_usable(&self, access: &CredentialAccess, address: IpAddr) -> bool {
        let credential = &access.credential;
        let address = address.to_canonical();
        credential.revoked_at.is_none()
            && credential.expires_at.is_none_or(|at| at > self.inner.clock.now())
            && (credential.allow.is_empty()
                || credential.allow.iter().any(|network| network.contains(&address)))
    }
}
