//! Host names of tracking links: the installation's own, and custom ones of customers.
//!
//! On failure: while the store is unavailable, the last known names stay.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use postroad_app::App;
use tokio::time::Instant;

/// Pause between two checks for changes, and so the longest delay until a change takes effect.
const VERSION_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The names are read at this interval even without a change, because some names expire.
const RELOAD_INTERVAL: Duration = Duration::from_mins(10);

/// Known host names. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TrackingHosts {
    /// The installation's own host name.
    own: Arc<str>,
    /// The customers' host names, in lower case.
    customer_hosts: Arc<RwLock<HashSet<String>>>,
}

impl TrackingHosts {
    pub(crate) fn new(own: &str) -> Self {
        Self { own: own.to_ascii_lowercase().into(), customer_hosts: Arc::default() }
    }

    /// Whether `host`, without a port, is a tracking host.
    pub fn contains(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        *self.own == *host || self.customer_hosts.read().contains(&host)
    }

    /// Reloads the names when they change, until the task is aborted.
    pub(crate) async fn reload_on_changes(self, app: App) {
        let mut known: Option<(Option<String>, Instant)> = None;
        loop {
            match app.tracking_hosts_version().await {
                Ok(version) => {
                    let is_up_to_date = known.as_ref().is_some_and(|(known_version, read_at)| {
                        *known_version == version && read_at.elapsed() < RELOAD_INTERVAL
                    });
                    if !is_up_to_date && self.reload(&app).await {
                        known = Some((version, Instant::now()));
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "checking tracking hosts for changes failed; the last known names stay");
                }
            }
            tokio::time::sleep(VERSION_CHECK_INTERVAL).await;
        }
    }

    /// Reads the customers' names; returns whether that succeeded.
    async fn reload(&self, app: &App) -> bool {
        match app.list_tracking_hosts().await {
            Ok(hosts) => {
                let hosts = hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect();
                *self.customer_hosts.write() = hosts;
                true
            }
            Err(error) => {
                tracing::debug!(%error, "reading tracking hosts failed; the last known names stay");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_compared_without_case() {
        let hosts = TrackingHosts::new("Track.Example.Net");
        assert!(hosts.contains("track.example.net") && hosts.contains("TRACK.example.net"));
        assert!(!hosts.contains("example.net"));
    }
}
