//! Settings of the SMTP listeners.

use std::time::Duration;

use ipnet::IpNet;
use postroad_model::{DomainName, Limits};

/// Maximum size of returned mail. Bounces quote the original message; many hosts quote only its beginning.
const RETURN_BYTES_MAX: usize = 10 << 20;
const RETURNS_IN_FLIGHT_BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Host name in the banner and in EHLO replies.
    pub hostname: DomainName,
    pub message_bytes_max: usize,
    /// Maximum number of bytes of all messages being received or stored.
    pub in_flight_bytes_max: usize,
    /// Proxies that must begin each connection with a PROXY header. No other peer's header is accepted.
    pub proxy_protocol_from: Vec<IpNet>,
    /// Maximum number of sessions on all listeners of one `Relay` together.
    pub sessions_max: usize,
    /// Maximum number of sessions of one address (IPv6: one /64). Loopback addresses are not counted: behind a tunnel
    /// all clients have the same one.
    pub sessions_per_address_max: usize,
    pub times: TimeLimits,
}

/// Time limits.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// Time for the PROXY header, which a proxy sends at once.
    pub proxy_header: Duration,
    pub tls_handshake: Duration,
    /// Time from one reply to the end of the next command, and between two pieces of a message (RFC 5321 4.5.3.2.7).
    pub idle: Duration,
    /// A message may take this long, plus the time its bytes take at the minimum rate.
    pub content_grace: Duration,
    pub content_bytes_per_second_min: u32,
    /// After this time a session ends, unless a transaction is in progress; after twice this time it ends in any case.
    pub session: Duration,
    /// Time for a client to read a reply.
    pub write: Duration,
    /// Longest wait each time a message needs more memory.
    pub memory_wait: Duration,
    /// Time for messages in progress to finish when the relay stops.
    pub stop: Duration,
}

impl Settings {
    pub fn new(hostname: DomainName) -> Self {
        Self {
            hostname,
            message_bytes_max: Limits::default().message_bytes_max,
            in_flight_bytes_max: 256 << 20,
            proxy_protocol_from: Vec::new(),
            sessions_max: 2_000,
            sessions_per_address_max: 100,
            times: TimeLimits::default(),
        }
    }
}

impl Settings {
    /// Settings of the bounce listener, whose `Relay` has a separate memory limit: a flood of bounces must not stop
    /// submission.
    #[must_use]
    pub fn for_returns(mut self) -> Self {
        self.message_bytes_max = RETURN_BYTES_MAX;
        self.in_flight_bytes_max = RETURNS_IN_FLIGHT_BYTES_MAX.min(self.in_flight_bytes_max);
        self
    }
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            proxy_header: Duration::from_secs(10),
            tls_handshake: Duration::from_secs(30),
            idle: Duration::from_mins(5),
            content_grace: Duration::from_mins(2),
            content_bytes_per_second_min: 1_024,
            session: Duration::from_hours(1),
            write: Duration::from_mins(1),
            memory_wait: Duration::from_secs(10),
            stop: Duration::from_secs(5),
        }
    }
}
