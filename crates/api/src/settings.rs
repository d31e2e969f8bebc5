//! Settings of the HTTP API, and the kinds of listeners.

use std::time::Duration;

use ipnet::IpNet;
use postroad_model::Limits;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Largest body of one request.
    pub request_bytes_max: usize,
    /// Bodies and large answers that may be in memory at the same time, all together.
    pub in_flight_bytes_max: usize,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Connections of one listener; more wait until one ends.
    pub connections_max: usize,
    /// Connections of one address to one listener; more are closed at once. Trusted proxies have no such limit.
    pub connections_per_address_max: usize,
    /// Requests of one address that are being worked on or whose answers are not sent yet; more get a 503.
    pub requests_per_address_max: usize,
    /// Likewise of one server, with any of its keys; more wait for a moment first.
    pub requests_per_server_max: usize,
    pub times: TimeLimits,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    pub tls_handshake: Duration,
    /// For the headers of a request in all: of the first one from connecting, of later ones from their first byte.
    pub first_request: Duration,
    /// Between two requests on one connection, the later one's headers included.
    pub idle: Duration,
    /// For one whole body to arrive.
    pub body: Duration,
    /// For the next piece of a body to arrive, or of a large answer to be taken.
    pub body_stall: Duration,
    /// For one whole large answer to be taken.
    pub answer: Duration,
    /// For a body or an answer to get its share of the memory.
    pub memory_wait: Duration,
    /// For requests in flight when the server stops.
    pub stop: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            request_bytes_max: Limits::default().request_bytes_max,
            in_flight_bytes_max: 512 << 20,
            trusted_proxies: Vec::new(),
            connections_max: 10_000,
            connections_per_address_max: 1_000,
            requests_per_address_max: 1_024,
            requests_per_server_max: 1_024,
            times: TimeLimits::default(),
        }
    }
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            tls_handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(10),
            idle: Duration::from_mins(1),
            body: Duration::from_mins(2),
            body_stall: Duration::from_secs(20),
            answer: Duration::from_mins(10),
            memory_wait: Duration::from_secs(10),
            stop: Duration::from_secs(5),
        }
    }
}

/// What a listener does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Serve,
    /// Sends callers to the https listener on that port. Requests that came over TLS to a trusted proxy are served.
    RedirectToHttps {
        port: u16,
    },
}
