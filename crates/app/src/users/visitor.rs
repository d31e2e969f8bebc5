//! The browser of a person who is signing in.

use std::net::IpAddr;

/// A browser in which a person signs in.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub address: IpAddr,
    pub user_agent: String,
    /// Token of the browser's previous session, which ends when the new session begins.
    pub previous_token: Option<String>,
}
