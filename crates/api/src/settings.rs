//! Settings of the HTTP API, and the kinds of listeners.

use std::time::Duration;

use ipnet::IpNet;
use postroad_model::Limits;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Largest body of one request.
    pub request_bytes_max: usize,
    /// Largest body of a call of send/batch.
    pub batch_bytes_max: usize,
    /// Total memory for bodies, and for answers over a few kilobytes.
    pub in_flight_bytes_max: usize,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Maximum number of connections of one listener; further ones wait until one ends.
    pub connections_max: usize,
    /// Maximum number of connections of one address to one listener; further ones are closed at once. Trusted proxies
    /// are exempt.
    pub connections_per_address_max: usize,
    /// Maximum number of requests of one address that are in progress or whose answers are not sent yet; further ones
    /// get a 503.
    pub requests_per_address_max: usize,
    /// Like `requests_per_address_max`, for one tenant: a server with all its keys, an account or the operator. Further
    /// requests wait briefly and then get a 503.
    pub requests_per_tenant_max: usize,
    pub times: TimeLimits,
}

/// Time limits.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    pub tls_handshake: Duration,
    /// Time for the headers of a request. For the first request it begins with the connection, for later
    /// requests with the first byte of their headers.
    pub request_head: Duration,
    /// Time between two requests on one connection, including the headers of the second request.
    pub idle: Duration,
    /// Time for one whole body to arrive.
    pub body: Duration,
    /// Time for the next piece of a body to arrive, or of a large answer to be read.
    pub body_stall: Duration,
    /// Time for one whole large answer to be read.
    pub answer: Duration,
    /// Longest wait for a share of the memory, or for a permit such as those for batches and calls in flight.
    pub memory_wait: Duration,
    /// Time for requests in flight to finish when the HTTP server stops.
    pub stop: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            request_bytes_max: Limits::default().request_bytes_max,
            batch_bytes_max: Limits::default().batch_bytes_max,
            in_flight_bytes_max: 512 << 20,
            trusted_proxies: Vec::new(),
            connections_max: 10_000,
            connections_per_address_max: 1_000,
            requests_per_address_max: 1_024,
            requests_per_tenant_max: 1_024,
            times: TimeLimits::default(),
        }
    }
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            tls_handshake: Duration::from_secs(10),
            request_head: Duration::from_secs(10),
            idle: Duration::from_mins(1),
            body: Duration::from_mins(2),
            body_stall: Duration::from_secs(20),
            answer: Duration::from_mins(10),
            memory_wait: Duration::from_secs(10),
            stop: Duration::from_secs(5),
        }
    }
}

/// How a listener treats requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Serve,
    /// Redirects callers to the https listener on `port`. Requests that a trusted proxy received over TLS are served.
    RedirectToHttps {
        port: u16,
    },
}
