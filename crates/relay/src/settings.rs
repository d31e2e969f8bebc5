//! Settings of the SMTP listeners.

use std::time::Duration;

use ipnet::IpNet;
use postroad_model::{DomainName, Limits};

/// Bounces quote what was sent, and few hosts more than its beginning.
const RETURN_BYTES_MAX: usize = 10 << 20;
const RETURNS_IN_FLIGHT_BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Clone)]
pub struct Settings {
    /// How the relay calls itself.
    pub hostname: DomainName,
    pub message_bytes_max: usize,
    /// Of all messages that are just coming in.
    pub in_flight_bytes_max: usize,
    /// Proxies that say in front of each connection whose it is. They have to; nobody else is believed.
    pub proxy_protocol_from: Vec<IpNet>,
    /// On all listeners together.
    pub sessions_max: usize,
    /// Of one address (IPv6: one /64). This machine's own are not counted: behind a tunnel everybody has them.
    pub sessions_per_address_max: usize,
    pub times: TimeLimits,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// For the line of the PROXY protocol, which a proxy has at hand.
    pub proxy_header: Duration,
    pub tls_handshake: Duration,
    /// From one reply to the end of the next command, and between two pieces of a message (RFC 5321 4.5.3.2.7).
    pub idle: Duration,
    /// A message may take so long, and then as long as its bytes take at the least pace.
    pub content_grace: Duration,
    pub content_bytes_per_second_min: u32,
    /// After that a session ends between two messages; after twice that, anywhere.
    pub session: Duration,
    /// For a client to take a reply.
    pub write: Duration,
    /// For a message to get its share of the memory.
    pub memory_wait: Duration,
    /// For messages that are under way when the relay stops.
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
    /// For mail that comes back, with memory of its own: a flood of it must not stop submission.
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
