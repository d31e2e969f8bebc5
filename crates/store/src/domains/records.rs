//! Sending domains and their DKIM keys as they go into the store and come out of it.

use std::fmt;

use postroad_model::{DomainId, DomainName, ServerId, Timestamp};
use serde::Serialize;

/// What a domain says of it; `None` for what the server says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DomainTracking {
    pub opens: Option<bool>,
    pub clicks: Option<bool>,
    /// The host name that its links lead to, instead of the installation's.
    pub host: Option<String>,
}

#[derive(Clone)]
pub struct NewDomain {
    pub server_id: ServerId,
    pub name: DomainName,
    pub verified_at: Option<Timestamp>,
    pub dkim_selector: String,
    pub dkim_private_key: Vec<u8>,
    pub dkim_public_key: Vec<u8>,
    pub dkim_ed25519: Option<Ed25519Key>,
}

/// The optional second DKIM key of a domain.
#[derive(Clone)]
pub struct Ed25519Key {
    pub selector: String,
    pub private_key: Vec<u8>,
    pub public_key: Vec<u8>,
}

impl fmt::Debug for Ed25519Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ed25519Key").field("selector", &self.selector).finish_non_exhaustive()
    }
}

/// What signs the mail of a verified domain.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKeys {
    pub selector: String,
    pub private_pkcs8: Vec<u8>,
    /// Selector and private key of the second signature.
    pub ed25519: Option<(String, Vec<u8>)>,
}

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = self.ed25519.as_ref().map(|(selector, _)| selector);
        f.debug_struct("SigningKeys")
            .field("selector", &self.selector)
            .field("ed25519_selector", &second)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for NewDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewDomain").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
pub struct Domain {
    pub id: DomainId,
    pub server_id: ServerId,
    pub server_name: String,
    pub name: DomainName,
    pub verified_at: Option<Timestamp>,
    pub dkim_selector: String,
    /// DER of the public key; the private one is only read by what signs.
    pub dkim_public_key: Vec<u8>,
    /// Selector and public key of the second signature.
    pub dkim_ed25519: Option<(String, Vec<u8>)>,
    pub tracking: DomainTracking,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
