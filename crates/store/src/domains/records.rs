//! Records of sending domains and their DKIM keys.

use std::fmt;

use postroad_model::{AccountId, DomainId, DomainKeyId, DomainName, ServerId, Timestamp};
use serde::Serialize;

/// Tracking settings of a domain; `None` inherits the server's setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DomainTracking {
    pub opens: Option<bool>,
    pub clicks: Option<bool>,
    /// Host name of its tracking links, instead of `track.<domain>` or the installation's.
    pub host: Option<String>,
}

/// Owner of a domain, who may send from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainOwner {
    Server(ServerId),
    /// All servers of the account. A server's own domain of the same name takes precedence; for sending, only if it is
    /// verified.
    Account(AccountId),
}

macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$of:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        pub enum $type {
            $($(#[$of])* #[serde(rename = $name)] $variant),+
        }

        impl $type {
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            pub fn parse(text: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|known| known.as_str() == text)
            }
        }
    };
}

names! {
    /// Why a domain counts as verified.
    VerifiedBy {
        /// Its records were found in the DNS.
        Dns = "dns",
        /// The operator set it.
        Operator = "operator",
    }
}

names! {
    KeyAlgorithm {
        Rsa = "rsa",
        /// Used only for a second signature, beside RSA.
        Ed25519 = "ed25519",
    }
}

names! {
    /// States of a DKIM key in order. After the last one the key is deleted.
    KeyState {
        /// Waits for its record.
        Pending = "pending",
        /// Signs.
        Active = "active",
        /// No longer signs; receivers still verify earlier signatures.
        Retiring = "retiring",
    }
}

/// A DKIM key to add.
#[derive(Clone)]
pub struct NewDkimKey {
    pub selector: String,
    pub algorithm: KeyAlgorithm,
    pub private_pkcs8: Vec<u8>,
    pub public_spki: Vec<u8>,
}

impl fmt::Debug for NewDkimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewDkimKey").field("selector", &self.selector).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
pub struct NewDomain {
    pub owner: DomainOwner,
    pub name: DomainName,
    /// Whether the operator verified it, so that its keys sign from the beginning.
    pub is_verified: bool,
    pub keys: Vec<NewDkimKey>,
    pub next_check_at: Timestamp,
    /// Results for its records that are already known: a JSON array.
    pub records: String,
    /// Maximum number of domains that the owner may have, including this one.
    pub owner_max: usize,
}

/// The public half of a DKIM key, and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainKey {
    pub id: DomainKeyId,
    pub selector: String,
    pub algorithm: KeyAlgorithm,
    pub public_spki: Vec<u8>,
    pub state: KeyState,
    pub state_since: Timestamp,
    /// Time since which the DNS denies its record.
    pub fails_since: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// Whether one of the customer's own names is used instead of the installation's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NameUse {
    /// Time since which it is used.
    pub since: Option<Timestamp>,
    /// Time since which checks have failed while the name is still used.
    pub fails_since: Option<Timestamp>,
    /// Failed checks in a row.
    pub fails: u32,
}

impl NameUse {
    pub fn is_used(self) -> bool {
        self.since.is_some()
    }
}

#[derive(Debug, Clone)]
pub struct Domain {
    pub id: DomainId,
    pub account_id: AccountId,
    pub account_name: String,
    /// `None` if the domain belongs to the account.
    pub server_id: Option<ServerId>,
    pub server_name: Option<String>,
    pub name: DomainName,
    pub verified_by: Option<VerifiedBy>,
    pub verified_at: Option<Timestamp>,
    /// Time since which all required records are verified, according to the last check with a verdict.
    pub good_since: Option<Timestamp>,
    /// Time since which required records fail.
    pub failing_since: Option<Timestamp>,
    pub checked_at: Option<Timestamp>,
    pub next_check_at: Timestamp,
    /// Results of the last check: a JSON array.
    pub records: String,
    /// When the check with this result began.
    pub result_begun_at: Option<Timestamp>,
    /// The customer's bounce domain, an alias of ours.
    pub return_path: NameUse,
    /// Whether the tracking host was ever found to be an alias of ours.
    pub has_track_alias: bool,
    /// The customer's tracking host, an alias of ours that answers with a valid certificate.
    pub track_host: NameUse,
    pub tracking: DomainTracking,
    /// In the order of their creation.
    pub keys: Vec<DomainKey>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Domain {
    pub fn owner(&self) -> DomainOwner {
        self.server_id.map_or(DomainOwner::Account(self.account_id), DomainOwner::Server)
    }

    pub fn is_verified(&self) -> bool {
        self.verified_by.is_some()
    }
}

/// An owner's domains, read before another is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerDomains {
    pub account_id: AccountId,
    /// Number of domains; counted up to a limit.
    pub count: usize,
    /// Whether the owner already has a domain of this name.
    pub has_name: bool,
}

/// Domains to list; `None` in a field matches all of the scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainFilter {
    pub scope: DomainScope,
    pub name: Option<DomainName>,
    pub verified: Option<bool>,
}

impl From<DomainScope> for DomainFilter {
    fn from(scope: DomainScope) -> Self {
        Self { scope, name: None, verified: None }
    }
}

/// Which domains to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainScope {
    All,
    /// Domains that a server may send from: its own, and those of its account that have other names.
    UsableBy(ServerId),
    /// Domains of the account itself.
    OfAccount(AccountId),
    /// Domains of the account and of all its servers.
    InAccount(AccountId),
}

/// A verified domain, with the fields that sending needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendingDomain {
    pub tracking: DomainTracking,
    /// Whether `track.<domain>` may be used.
    pub has_track_host: bool,
}

/// A signing key.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    pub id: DomainKeyId,
    pub selector: String,
    pub algorithm: KeyAlgorithm,
    pub private_pkcs8: Vec<u8>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("selector", &self.selector)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// A verified domain, with the fields that delivery needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainDelivery {
    /// RSA first. Empty if no key is active, or the DNS has denied the records of all active keys for too long.
    pub keys: Vec<SigningKey>,
    /// Whether `rp.<domain>` may be used.
    pub has_return_path: bool,
}

/// The result of checking a domain's records. A value is `None` if the DNS gave no answer; it then stays as it was.
#[derive(Debug, Clone)]
pub struct DomainCheck {
    pub id: DomainId,
    /// Start of the check. A check that began before the recorded check did is ignored.
    pub begun_at: Timestamp,
    /// Results of the records: a JSON array, stored as it is.
    pub records: String,
    /// Records as shown in events: a JSON array.
    pub event_records: String,
    /// Whether all required records are verified.
    pub is_good: Option<bool>,
    /// Keys whose records the DNS answered for, and whether they are verified.
    pub keys: Vec<(DomainKeyId, bool)>,
    pub has_return_path: Option<bool>,
    /// Whether the tracking host is an alias of ours.
    pub has_track_alias: Option<bool>,
    /// Whether the tracking host answers with a valid certificate.
    pub has_track_host: Option<bool>,
    pub next_check_at: Timestamp,
}
