//! Authentication of SMTP clients: by user name and secret, by IP address, or none (in `postroad dev`). The user name
//! is an API key, or the login of a key: an e-mail address chosen for that key.

use std::time::Duration;

use ipnet::IpNet;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{CredentialId, EmailAddress, Scope};
use postroad_store::{Credential, KeyHash, StoreError};
use subtle::ConstantTimeEq;

use crate::access::{Denial, Operation};
use crate::authenticate::AuthFailure;
use crate::secrets::hash;
use crate::{App, Caller, Peer};

/// Authenticated client. Its right to send is checked again for every message, because keys are revoked and
/// servers suspended while sessions last.
#[derive(Debug, Clone)]
pub struct Submitter {
    key_hash: KeyHash,
    operation: Operation,
    peer: Peer,
    /// Whether From may be any address.
    any_from: bool,
}

/// Why a client may not submit.
#[derive(Debug)]
pub enum LoginFailure {
    /// The key or login is unknown, revoked, expired, or used from a forbidden network; or the secret is wrong. Reply
    /// only after `delay`; disconnect a client that is `shut_out`, because it has failed too often.
    Invalid {
        delay: Duration,
        shut_out: bool,
    },
    /// No credential is bound to a network that contains the client's IP address, or `postroad dev` has no key yet.
    NetworkUnknown,
    Suspended,
    /// The credential is valid, but not for sending.
    MayNotSend {
        scope: Scope,
    },
    Store(StoreError),
}

/// Network bound to a credential.
#[derive(Debug, Clone)]
pub(crate) struct BoundNetwork {
    network: IpNet,
    key_hash: KeyHash,
    credential_id: CredentialId,
}

#[boxed_futures]
impl App {
    /// Authenticates an AUTH command. The user name is an API key or the login of a key; the password is the key's
    /// secret.
    pub async fn log_in(&self, user_name: &str, secret: &str, peer: Peer) -> Result<Submitter, LoginFailure> {
        let secret_hash = hash(secret);
        let key_hash = self.find_key_of_login(user_name, secret_hash).await.map_err(LoginFailure::Store)?;
        let key_hash = key_hash.unwrap_or_else(|| hash(user_name));
        let access = self.find_access(key_hash).await.map_err(LoginFailure::Store)?;
        // Also compare for an unknown key, so that timing does not reveal whether a key exists.
        let expected = access.as_ref().map_or(KeyHash([0; 32]), |access| access.credential.secret_hash);
        let is_right: bool = expected.0.ct_eq(&secret_hash.0).into();
        if access.is_none() || !is_right {
            return Err(self.record_bad_login(peer));
        }
        let submitter = Submitter { key_hash, operation: Operation::SmtpSubmit, peer, any_from: false };
        self.admit_submitter(&submitter).await?;
        Ok(submitter)
    }

    /// Finds the key of a login; `None` if `user_name` is no login or the secret is wrong.
    async fn find_key_of_login(
        &self,
        user_name: &str,
        secret_hash: KeyHash,
    ) -> Result<Option<KeyHash>, StoreError> {
        // Generated API keys contain no @, so they are not looked up here.
        let Ok(login) = EmailAddress::parse(user_name) else { return Ok(None) };
        let known = self.inner.store.list_hashes_of_login(login.mailbox_key()).await?;
        let mut found = None;
        for (key_hash, expected) in known {
            if expected.0.ct_eq(&secret_hash.0).into() {
                found = Some(key_hash);
            }
        }
        Ok(found)
    }

    /// Authenticates by the credential bound to the client's IP address. The narrowest network wins, and the oldest
    /// credential among equals.
    pub async fn log_in_by_address(&self, peer: Peer) -> Result<Submitter, LoginFailure> {
        let address = peer.address.to_canonical();
        let networks = self.bound_networks().await.map_err(LoginFailure::Store)?;
        let matching = networks.iter().filter(|bound| bound.network.contains(&address));
        let best =
            matching.max_by_key(|bound| (bound.network.prefix_len(), std::cmp::Reverse(bound.credential_id)));
        let best = best.ok_or(LoginFailure::NetworkUnknown)?;
        let operation = Operation::SmtpSubmitByAddress;
        Ok(Submitter { key_hash: best.key_hash, operation, peer, any_from: false })
    }

    /// Admits a client of a listener that requires no authentication. The client sends with the key of `postroad dev`
    /// and any From address.
    pub async fn log_in_without_credentials(&self, peer: Peer) -> Result<Submitter, LoginFailure> {
        let key_hash = self.inner.dev.key().ok_or(LoginFailure::NetworkUnknown)?;
        Ok(Submitter { key_hash, operation: Operation::SmtpSubmit, peer, any_from: true })
    }

    /// Checks whether the client may send a message now, and returns a `Caller` for the client's key.
    pub async fn admit_submitter(&self, submitter: &Submitter) -> Result<Caller, LoginFailure> {
        let peer = submitter.peer;
        let access = self.find_access(submitter.key_hash).await.map_err(LoginFailure::Store)?;
        let Some(access) = access.filter(|access| self.is_usable(access, peer.address)) else {
            return Err(self.record_bad_login(peer));
        };
        let admitted = self.admit(access, peer, submitter.operation);
        let admitted =
            admitted.map(|caller| Caller { any_from: caller.any_from || submitter.any_from, ..caller });
        admitted.map_err(|failure| match failure {
            AuthFailure::Suspended => LoginFailure::Suspended,
            AuthFailure::Denied(Denial::ServerScope { scope, .. }) => LoginFailure::MayNotSend { scope },
            // `admit` returns none of these here: the key is authenticated already, every suspension is `Suspended`,
            // and only the scope can deny sending.
            AuthFailure::Missing { .. }
            | AuthFailure::Invalid { .. }
            | AuthFailure::AccountSuspended
            | AuthFailure::Denied(_) => self.record_bad_login(peer),
            AuthFailure::Store(error) => LoginFailure::Store(error),
        })
    }

    fn record_bad_login(&self, peer: Peer) -> LoginFailure {
        let penalty = self.inner.bad_keys.record_failure(peer.address);
        LoginFailure::Invalid { delay: penalty.delay, shut_out: penalty.shut_out }
    }

    /// Networks that valid credentials are bound to. Revoked and expired credentials are left out, so that a wider
    /// network of another credential can match.
    async fn bound_networks(&self) -> Result<Vec<BoundNetwork>, StoreError> {
        if let Some(networks) = self.inner.bound_networks.find(&()) {
            return Ok(networks);
        }
        let start = self.inner.bound_networks.start_read();
        let now = self.inner.clock.now();
        let is_valid = |credential: &Credential| {
            credential.revoked_at.is_none() && credential.expires_at.is_none_or(|at| at > now)
        };
        let credentials = self.inner.store.list_address_credentials().await?;
        let networks: Vec<BoundNetwork> = credentials
            .iter()
            .filter(|credential| is_valid(credential))
            .flat_map(|credential| {
                credential.allow.iter().map(|network| BoundNetwork {
                    network: *network,
                    key_hash: credential.key_hash,
                    credential_id: credential.id,
                })
            })
            .collect();
        self.inner.bound_networks.put((), networks.clone(), start);
        Ok(networks)
    }
}
