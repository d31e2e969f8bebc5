//! A sending domain and its DKIM keys.

use std::fmt;

use postroad_model::{AccountId, DomainId, DomainKeyId, DomainName, ServerId, Timestamp};
use serde::Serialize;

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
    /// When the check whose results are in `records` began.
    pub result_begun_at: Option<Timestamp>,
    /// `rp.<domain>`: the customer's bounce domain, an alias (CNAME) of the installation's.
    pub return_path: NameUse,
    /// Whether `track.<domain>` was ever found to be an alias (CNAME) of the installation's tracking host.
    pub has_track_alias: bool,
    /// `track.<domain>`: the customer's tracking host, an alias of the installation's that answers with a valid
    /// certificate.
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

/// Owner of a domain, who may send from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainOwner {
    Server(ServerId),
    /// All servers of the account. A server's own domain of the same name takes precedence; for sending, only if it is
    /// verified.
    Account(AccountId),
}

/// Tracking settings of a domain; `None` inherits the server's setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DomainTracking {
    pub opens: Option<bool>,
    pub clicks: Option<bool>,
    /// Host name of the domain's tracking links, instead of `track.<domain>` or the installation's.
    pub host: Option<String>,
}

/// Whether one of the customer's own names is used instead of the installation's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NameUse {
    /// Time since which the customer's name is used; `None` if the installation's name is used.
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
    /// States of a DKIM key in order. After the last state the key is deleted.
    KeyState {
        /// Waits until its DNS record is found.
        Pending = "pending",
        /// Signs.
        Active = "active",
        /// No longer signs; receivers still verify earlier signatures.
        Retiring = "retiring",
    }
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
    /// Time since which the DNS answers that the key's record is missing or wrong.
    pub fails_since: Option<Timestamp>,
    pub created_at: Timestamp,
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
