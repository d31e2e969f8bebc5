//! Networks and expiry of the requesting key. A key can give other keys no wider networks and no later expiry.

use ipnet::IpNet;
use postroad_model::Timestamp;

use super::{AccountRefusal, ObjectKind, Requester};
use crate::App;
use crate::access::Actor;

/// Limits of an account or operator key; people and the command line have none.
#[derive(Debug, Default)]
pub(super) struct KeyLimits {
    /// The requesting key's networks; empty for all networks.
    allow: Vec<IpNet>,
    expires_at: Option<Timestamp>,
}

impl App {
    pub(super) async fn limits_of_requesting_key(&self, by: &Requester) -> Result<KeyLimits, AccountRefusal> {
        let (Actor::AccountKey { id, .. } | Actor::OperatorKey { id, .. }) = &by.actor else {
            return Ok(KeyLimits::default());
        };
        let requesting_key = self.inner.store.find_account_key_by_id(*id).await?;
        let requesting_key = requesting_key.ok_or(AccountRefusal::NotFound(ObjectKind::AccountKey))?;
        Ok(KeyLimits { allow: requesting_key.allow, expires_at: requesting_key.expires_at })
    }
}

impl KeyLimits {
    /// The requested networks, or the key's own if none are requested. Refuses networks outside the key's own.
    pub(super) fn restrict_networks(&self, requested: Vec<IpNet>) -> Result<Vec<IpNet>, AccountRefusal> {
        if requested.is_empty() {
            return Ok(self.allow.clone());
        }
        let is_within = |network: &IpNet| self.allow.iter().any(|own| own.contains(network));
        if self.allow.is_empty() || requested.iter().all(is_within) {
            return Ok(requested);
        }
        Err(AccountRefusal::problem("allow", "should be within the networks of the calling key"))
    }

    /// The earlier of the requested expiry and the requesting key's own; `None` if neither is set.
    pub(super) fn restrict_expiry(&self, requested: Option<Timestamp>) -> Option<Timestamp> {
        requested.into_iter().chain(self.expires_at).min()
    }
}
