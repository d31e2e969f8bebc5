//! Settings of delivery.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use postroad_model::{DomainName, SendRate};
use postroad_net::dns::DnssecTrust;

use crate::retry::RetryPolicy;
use crate::schedule::warm_up::WarmUpPlan;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The public name of this host, for example the HELO name of the default source. A domain's MX records with this
    /// name lead back here.
    pub hostname: DomainName,
    /// Where the flight journal is kept.
    pub journal_dir: PathBuf,
    /// Port of remote mail servers, usually 25.
    pub smtp_port: u16,
    pub smart_host: Option<SmartHost>,
    pub allow_private_destinations: bool,
    pub retry: RetryPolicy,
    /// Messages that wait for this long without an attempt are recorded as delayed.
    pub delay_notice_after: Duration,
    /// Longest wait for a reply; caps the longer timeouts that RFC 5321 recommends.
    pub reply_timeout: Duration,
    /// Longest wait for the final reply to a message. A short timeout causes duplicates.
    pub final_reply_timeout: Duration,
    pub connect_timeout: Duration,
    /// While connections are scarce: longest time until a connected host accepts messages. Each reply before the last
    /// bytes of a message then usually gets 3 s, and never more than this.
    pub busy_greeting_timeout: Duration,
    /// Idle connections are closed after this long.
    pub idle_timeout: Duration,
    /// A connection takes no new messages after this long.
    pub connection_lifetime: Duration,
    /// Maximum number of concurrent connections of this node to mail servers. Up to half as many more may be parked:
    /// they only wait for a final reply.
    pub connections_max: u32,
    /// Whether messages are signed; off if a smart host signs.
    pub dkim: bool,
    /// Threads that make DKIM signatures.
    pub signing_threads: usize,
    /// Maximum memory for fresh messages that wait for their first attempt.
    pub fresh_bytes_max: usize,
    /// Maximum number of messages that wait in memory; others stay in the store until there is room. One server gets
    /// less than half.
    pub messages_max: usize,
    pub warm_up: WarmUpPlan,
    /// TOML that changes or adds provider rules.
    pub provider_overrides: Option<String>,
    /// Reserved domain whose recipients are simulated.
    pub simulator_domain: DomainName,
    /// Whether the simulator runs; without it, mail to its domain fails at once.
    pub simulator: bool,
    /// Whether mail is caught in an inbox in this process instead of being sent; the simulator's mail is not caught.
    pub catch_all: bool,
    /// Messages whose last bytes were sent may finish for this long when the service stops.
    pub drain_timeout: Duration,
    /// Certificate authorities to trust for verified TLS in addition to the public ones (PEM).
    pub ca_file: Option<PathBuf>,
    /// Port of MTA-STS policy hosts, usually 443.
    pub mta_sts_port: u16,
    /// File that keeps MTA-STS policies over a restart.
    pub mta_sts_file: PathBuf,
    /// If empty, the system's resolvers are used.
    pub nameservers: Vec<SocketAddr>,
    /// Resolvers whose DNSSEC validation is trusted; DANE needs it.
    pub dnssec: DnssecTrust,
    pub ipv6: bool,
}

/// A host that accepts all mail and forwards it.
#[derive(Clone, PartialEq, Eq)]
pub struct SmartHost {
    pub host: String,
    pub port: u16,
    pub tls: SmartHostTls,
    /// User name and password.
    pub credentials: Option<(String, String)>,
    /// Maximum number of concurrent connections from one source address.
    pub connections_max: u32,
    /// `None` for unlimited.
    pub rate: Option<SendRate>,
}

impl SmartHost {
    /// Whether the smart host is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.host.as_str(), "localhost" | "127.0.0.1" | "::1")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmartHostTls {
    Off,
    Opportunistic,
    Required,
    Implicit,
}

impl fmt::Debug for SmartHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmartHost")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}
