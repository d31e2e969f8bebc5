//! Which host names are for tracking links: the installation's own, and those that customers pointed at us.
//!
//! On failure: while the store is away, the names that were read last stay.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use postroad_app::App;

/// How late a change is seen.
const READ_EVERY: Duration = Duration::from_secs(2);

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct TrackingHosts {
    own: Arc<str>,
    customers: Arc<RwLock<HashSet<String>>>,
}

impl TrackingHosts {
    pub(crate) fn new(own: &str) -> Self {
        Self { own: own.to_ascii_lowercase().into(), customers: Arc::default() }
    }

    /// `host` without a port.
    pub fn contains(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        *self.own == *host || self.customers.read().contains(&host)
    }

    /// Reads them for ever.
    pub(crate) async fn follow(self, app: App) {
        loop {
            match app.list_tracking_hosts().await {
                Ok(hosts) => {
                    let hosts = hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect();
                    *self.customers.write() = hosts;
                }
                Err(error) => tracing::debug!(%error, "the names of tracking hosts could not be read"),
            }
            tokio::time::sleep(READ_EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_case() {
        let hosts = TrackingHosts::new("Track.Example.Net");
        assert!(hosts.contains("track.example.net") && hosts.contains("TRACK.example.net"));
        assert!(!hosts.contains("example.net"));
    }
}
