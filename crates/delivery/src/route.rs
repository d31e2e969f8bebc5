//! Routes: which hosts accept a domain's mail, in which order, and with which security.

use std::net::SocketAddr;
use std::sync::Arc;

use postroad_model::Timestamp;
use postroad_net::dane::DaneTls;
use postroad_net::mta_sts::Policy;

use crate::providers::Provider;

/// The destination of a domain's mail.
#[derive(Debug)]
pub(crate) struct Route {
    /// Identifies the set of hosts.
    pub(crate) site: Arc<str>,
    /// Identifies the set of hosts and the required security: domains with equal values share connections.
    pub(crate) secured_site: Arc<str>,
    pub(crate) provider: Arc<str>,
    /// The provider's limits.
    pub(crate) rules: Arc<Provider>,
    /// In the order of their preference.
    pub(crate) hosts: Vec<RouteHost>,
    pub(crate) security: Security,
    pub(crate) kind: RouteKind,
    /// Exempt from gates, rates, pacing and suppressions, but not from connection limits; only the simulator is.
    pub(crate) is_exempt: bool,
    pub(crate) valid_until: Timestamp,
}

#[derive(Debug, Clone)]
pub(crate) struct RouteHost {
    pub(crate) name: String,
    pub(crate) preference: u16,
    /// Address of a host in this process, which needs no DNS.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) port: u16,
    pub(crate) dane: Dane,
}

/// Requirements of the host's TLSA records (RFC 7672).
#[derive(Debug, Clone, Default)]
pub(crate) enum Dane {
    #[default]
    Nothing,
    /// TLS with a certificate that matches the records. Replaces the requirements of `Route::security`, the MTA-STS
    /// policy included.
    Certificate(Arc<DaneTls>),
    /// At least TLS with any certificate, because records exist but none is usable. `Route::security` may require more.
    Encryption,
    /// The records could not be looked up. No message is sent to the host until they can.
    Unknown(String),
}

impl Dane {
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Security {
    /// TLS with any certificate if the host offers it; plain if it does not, or if TLS fails.
    Opportunistic,
    /// TLS with a certificate for the host's name is required; hosts must be listed by the policy, if there is one.
    Verified { demanded_by: TlsDemand, policy: Option<Arc<Policy>> },
    /// TLS from the first byte, with a certificate for the host's name.
    Implicit,
    /// TLS is not used even if offered.
    Plain,
}

/// Setting or standard that requires verified TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsDemand {
    MtaSts,
    Sender,
    SmartHostSetting,
    SmartHostPassword,
}

impl TlsDemand {
    /// Words for sentences in delivery records.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::MtaSts => "MTA-STS",
            Self::Sender => "the sender",
            Self::SmartHostSetting => "the smart host's setting",
            Self::SmartHostPassword => "the smart host's password",
        }
    }

    /// Value of `tls_policy` in delivery records.
    pub(crate) fn policy_name(self) -> &'static str {
        match self {
            Self::MtaSts => "mta_sts",
            Self::Sender => "require_tls",
            Self::SmartHostSetting | Self::SmartHostPassword => "smarthost",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteKind {
    /// Found in the DNS.
    Mx,
    SmartHost,
    /// The dev inbox.
    Inbox,
    Simulator,
}
