//! Authentication of calls that accept several kinds of keys: of the operator, of an account, or of a server.

use std::net::IpAddr;

use postroad_boxed_futures::boxed_futures;
use postroad_store::{AccountKey, StoreError};
use subtle::ConstantTimeEq;

use crate::access::{Actor, Level, Operation, permit_any};
use crate::accounts::Requester;
use crate::authenticate::KeyKind;
use crate::secrets::hash;
use crate::{App, AuthFailure, Peer};

/// The keys presented with a call, at most one from each header. The most powerful key is used.
#[derive(Debug, Clone, Copy, Default)]
pub struct PresentedKeys<'a> {
    pub operator: Option<&'a str>,
    pub account: Option<&'a str>,
    pub server: Option<&'a str>,
}

#[boxed_futures]
impl App {
    /// Checks the most powerful key of a call. The owner of the object is checked later, by the function that runs the
    /// operation.
    pub async fn authenticate_actor(
        &self,
        keys: PresentedKeys<'_>,
        peer: Peer,
        operation: Operation,
    ) -> Result<Requester, AuthFailure> {
        let is_given = |key: Option<&'_ str>| key.is_some_and(|key| !key.trim().is_empty());
        let (kind, key) = if is_given(keys.operator) {
            (KeyKind::Operator, keys.operator)
        } else if is_given(keys.account) {
            (KeyKind::Account, keys.account)
        } else if is_given(keys.server) {
            let caller = self.authenticate(keys.server, peer, operation).await?;
            return Ok(caller.requester());
        } else {
            let kind = match operation.level() {
                Level::Server | Level::ServerOrAccount => KeyKind::Server,
                Level::Account | Level::Person => KeyKind::Account,
                Level::Operator => KeyKind::Operator,
            };
            (kind, None)
        };
        let Some(key) = key else {
            let delay = self.inner.bad_keys.record_failure(peer.address).delay;
            return Err(AuthFailure::Missing { kind, delay });
        };
        let found = self.find_account_key(key).await.map_err(AuthFailure::Store)?;
        let is_of_kind = |key: &AccountKey| key.account_id.is_some() == (kind == KeyKind::Account);
        let Some(found) =
            found.filter(|key| is_of_kind(key) && self.is_account_key_usable(key, peer.address))
        else {
            let delay = self.inner.bad_keys.record_failure(peer.address).delay;
            return Err(AuthFailure::Invalid { kind, delay });
        };
        if found.suspended_reason.is_some() {
            return Err(AuthFailure::AccountSuspended);
        }
        let (id, scopes) = (found.id, found.scopes);
        let actor = match found.account_id {
            Some(account_id) => Actor::AccountKey { id, account_id, scopes },
            None => Actor::OperatorKey { id, scopes },
        };
        permit_any(&actor, operation).map_err(AuthFailure::Denied)?;
        self.inner.used_account_keys.record(id, self.inner.clock.now());
        Ok(Requester { actor, address: Some(peer.address) })
    }

    async fn find_account_key(&self, key: &str) -> Result<Option<AccountKey>, StoreError> {
        let key_hash = hash(key);
        if let Some(key) = self.inner.account_keys.find(&key_hash) {
            return Ok(Some(key));
        }
        let start = self.inner.account_keys.start_read();
        let found = self.inner.store.find_account_key(key_hash).await?;
        // The look-up was by hash; this comparison decides, in constant time.
        let found = found.filter(|key| key.key_hash.0.ct_eq(&key_hash.0).into());
        if let Some(key) = &found {
            self.inner.account_keys.put(key_hash, key.clone(), start);
        }
        Ok(found)
    }

    fn is_account_key_usable(&self, key: &AccountKey, address: IpAddr) -> bool {
        let address = address.to_canonical();
        key.revoked_at.is_none()
            && key.expires_at.is_none_or(|at| at > self.inner.clock.now())
            && (key.allow.is_empty() || key.allow.iter().any(|network| network.contains(&address)))
    }
}
