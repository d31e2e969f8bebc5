//! Sending domains and their DKIM keys as they go into the store and come out of it.

use std::fmt;

use postroad_model::{AccountId, DomainId, DomainKeyId, DomainName, ServerId, Timestamp};
use serde::Serialize;

/// What a domain says of tracking; `None` is its server's setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DomainTracking {
    pub opens: Option<bool>,
    pub clicks: Option<bool>,
    /// The host name that its links lead to, instead of the installation's.
    pub host: Option<String>,
}

/// Who may send from a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainOwner {
    Server(ServerId),
    /// All servers of the account. A server's own domain of the same name goes first.
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
        /// Its records were found.
        Dns = "dns",
        /// The operator said so.
        Operator = "operator",
    }
}

names! {
    KeyAlgorithm {
        Rsa = "rsa",
        /// For a second signature only.
        Ed25519 = "ed25519",
    }
}

names! {
    /// The states of a DKIM key in their order. After the last one the key is deleted.
    KeyState {
        /// Waits for its record.
        Pending = "pending",
        /// Signs.
        Active = "active",
        /// Signs no more; receivers still verify what it signed.
        Retiring = "retiring",
    }
}

/// A DKIM key on its way in.
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
    /// By the operator's word: then its keys sign from the beginning.
    pub is_verified: bool,
    pub keys: Vec<NewDkimKey>,
    pub next_check_at: Timestamp,
    /// What is known of its records already: a JSON array.
    pub records: String,
    /// Domains that the owner may have with it.
    pub owner_max: usize,
}

/// The public half of a DKIM key, and where it is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainKey {
    pub id: DomainKeyId,
    pub selector: String,
    pub algorithm: KeyAlgorithm,
    pub public_spki: Vec<u8>,
    pub state: KeyState,
    pub state_since: Timestamp,
    /// Since when the DNS denies its record.
    pub fails_since: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// Whether one of the customer's names is used instead of the installation's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NameUse {
    /// Since when it is used.
    pub since: Option<Timestamp>,
    /// Since when checks find it wrong, although it is still used.
    pub fails_since: Option<Timestamp>,
    /// Checks in a row that found it wrong.
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
    /// `None`: it belongs to the account.
    pub server_id: Option<ServerId>,
    pub server_name: Option<String>,
    pub name: DomainName,
    pub verified_by: Option<VerifiedBy>,
    pub verified_at: Option<Timestamp>,
    /// Since when all required records verify, as of the last check with a verdict.
    pub good_since: Option<Timestamp>,
    /// Since when they do not any more.
    pub failing_since: Option<Timestamp>,
    pub checked_at: Option<Timestamp>,
    pub next_check_at: Timestamp,
    /// What the last check found: a JSON array.
    pub records: String,
    /// When the check began whose result this is.
    pub result_begun_at: Option<Timestamp>,
    /// The name for bounces, an alias of ours.
    pub return_path: NameUse,
    /// Whether the name for links was ever found to be an alias of ours.
    pub has_track_alias: bool,
    /// The name for links, an alias of ours that answers with a good certificate.
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

/// What an owner has before a domain is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerDomains {
    pub account_id: AccountId,
    /// Counted up to a limit.
    pub count: usize,
    /// Whether the domain is one of them already.
    pub has_name: bool,
}

/// Which domains a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainFilter {
    All,
    /// Those that a server may send from: its own, and its account's of other names.
    UsableBy(ServerId),
    /// Those that belong to the account itself.
    OfAccount(AccountId),
    /// Those of the account and of all its servers.
    InAccount(AccountId),
}

/// A verified domain as a send needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendingDomain {
    pub tracking: DomainTracking,
    /// Whether `track.<domain>` may be used.
    pub has_track_host: bool,
}

/// A key that signs.
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

/// A verified domain as delivery needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainDelivery {
    /// RSA first. None if the DNS has denied the records of all for too long.
    pub keys: Vec<SigningKey>,
    /// Whether `rp.<domain>` may be used.
    pub has_return_path: bool,
}

/// The outcome of a check of a domain's records. `None` where the DNS gave no answer: then nothing changes.
#[derive(Debug, Clone)]
pub struct DomainCheck {
    pub id: DomainId,
    /// A check that began before the one whose result is shown changes nothing.
    pub begun_at: Timestamp,
    /// A JSON array, kept as it is.
    pub records: String,
    /// Records as events tell of them: a JSON array.
    pub told_records: String,
    /// Whether all required records verify.
    pub is_good: Option<bool>,
    /// Keys about whose records the DNS answered, and whether they verify.
    pub keys: Vec<(DomainKeyId, bool)>,
    pub has_return_path: Option<bool>,
    /// Whether the name for links is an alias of ours.
    pub has_track_alias: Option<bool>,
    /// Whether its host answers with a good certificate.
    pub has_track_host: Option<bool>,
    pub next_check_at: Timestamp,
}
