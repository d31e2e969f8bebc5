//! The browser of a person.

use std::net::IpAddr;

/// The browser of a person who is not signed in yet.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub address: IpAddr,
    pub user_agent: String,
    /// Token of the session that the browser has, which ends.
    pub previous_token: Option<String>,
}
