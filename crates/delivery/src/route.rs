//! The way to a recipient's domain: which hosts take its mail, in which order, and what is demanded of them.

use std::net::SocketAddr;
use std::sync::Arc;

use postroad_model::Timestamp;
use postroad_net::mta_sts::Policy;

use crate::providers::Provider;

/// Where a domain's mail goes.
#[derive(Debug)]
pub(crate) struct Route {
    /// Names the set of hosts and what is demanded of them: domains with the same site share its connections.
    pub(crate) site: Arc<str>,
    /// The set of hosts alone: limits count by it.
    pub(crate) base_site: Arc<str>,
    pub(crate) provider: Arc<str>,
    /// The provider's limits.
    pub(crate) rules: Arc<Provider>,
    /// By preference.
    pub(crate) hosts: Vec<RouteHost>,
    pub(crate) security: Security,
    pub(crate) kind: RouteKind,
    /// Free of gates, paces and limits: the simulator.
    pub(crate) is_exempt: bool,
    pub(crate) valid_until: Timestamp,
}

#[derive(Debug, Clone)]
pub(crate) struct RouteHost {
    pub(crate) name: String,
    pub(crate) preference: u16,
    /// Known without asking the DNS: hosts in this process.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) port: u16,
}

#[derive(Debug, Clone)]
pub(crate) enum Security {
    /// Encrypted where offered, whatever the certificate.
    Opportunistic,
    /// No message without TLS and a certificate for the host's name; hosts must be named by the policy, if there is one.
    Verified { demanded_by: &'static str, policy: Option<Arc<Policy>> },
    /// TLS from the first byte, with a certificate for the host's name.
    Implicit,
    /// Not even when offered.
    Plain,
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
