//! What delivery found out about a receiver.

use std::net::IpAddr;

use postroad_model::Timestamp;

/// One receiver as seen from one source address. `None`: nothing is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacingNote {
    /// Unspecified for the address that the machine chooses.
    pub source: IpAddr,
    /// The set of its hosts, as routes name it.
    pub site: String,
    /// Messages that it seems to take.
    pub per_minute: Option<u32>,
    /// Connections that it seems to take at once.
    pub connections: Option<u32>,
    /// How long its greylisting lasts.
    pub greylist_secs: Option<u32>,
    /// Its words.
    pub reason: String,
    pub learned_at: Timestamp,
}
