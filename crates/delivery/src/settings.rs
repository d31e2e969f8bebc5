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
    /// The public name of this host: HELO, `Received`, return paths.
    pub hostname: DomainName,
    /// Where the flight journal is kept.
    pub journal_dir: PathBuf,
    /// The port of mail servers; not 25 in tests only.
    pub smtp_port: u16,
    pub smart_host: Option<SmartHost>,
    pub allow_private_destinations: bool,
    pub retry: RetryPolicy,
    /// Longest wait for a reply, where the protocol's own limits are longer.
    pub reply_timeout: Duration,
    /// Likewise for the reply to the end of a message. A short one makes duplicates.
    pub final_reply_timeout: Duration,
    pub connect_timeout: Duration,
    /// Longest wait for a host to take messages, while connections are short.
    pub busy_greeting_timeout: Duration,
    /// A connection without work is kept this long.
    pub idle_timeout: Duration,
    /// A connection is not used for new messages after this long.
    pub connection_lifetime: Duration,
    /// Connections of this node together.
    pub connections_max: u32,
    /// Off where a smart host signs.
    pub dkim: bool,
    /// Threads that sign.
    pub signing_threads: usize,
    /// Memory for fresh messages that wait for their first attempt.
    pub fresh_bytes_max: usize,
    pub warm_up: WarmUpPlan,
    /// TOML that changes or adds provider rules.
    pub provider_overrides: Option<String>,
    /// Names the reserved domain whose recipients are simulated.
    pub simulator_domain: DomainName,
    /// Whether there is a simulator; without it, mail to its domain fails at once.
    pub simulator: bool,
    /// Catch everything in an inbox in this process instead of sending it into the world.
    pub catch_all: bool,
    /// Messages in flight may finish for this long when the service stops.
    pub drain_timeout: Duration,
    /// Authorities to trust for verified TLS beside the public ones (PEM).
    pub ca_file: Option<PathBuf>,
    /// The port of MTA-STS policy hosts; not 443 in tests only.
    pub mta_sts_port: u16,
    /// Keeps MTA-STS policies over a restart.
    pub mta_sts_file: PathBuf,
    pub nameservers: Vec<SocketAddr>,
    /// Whose DNSSEC validation is trusted; DANE needs it.
    pub dnssec: DnssecTrust,
    pub ipv6: bool,
}

/// A host that takes all mail and sends it on.
#[derive(Clone, PartialEq, Eq)]
pub struct SmartHost {
    pub host: String,
    pub port: u16,
    pub tls: SmartHostTls,
    pub credentials: Option<(String, String)>,
    /// At once, from one source address.
    pub connections_max: u32,
    /// Messages in a time; `None` for any number.
    pub rate: Option<SendRate>,
}

impl SmartHost {
    /// On this machine.
    pub(crate) fn is_here(&self) -> bool {
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
