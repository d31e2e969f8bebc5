//! Tracking links: `/c/…` redirects to a link's target, `/o/…` is the pixel, `/u/…` unsubscribes (docs/tracking.md).
//!
//! Clicks and opens are answered from their token alone, so that they work while the store is down. Their events go
//! into a bounded queue and from there into the store. Only an unsubscription waits for the store.

mod event_queue;
mod hosts;
mod pages;
mod requests;
mod routes;
mod writer;

use std::sync::Arc;

use axum::Router;
use postroad_app::App;
use postroad_app::tracking_events::Agents;
use postroad_mail::TrackKey;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use event_queue::EventQueue;
pub use hosts::TrackingHosts;
use requests::TrackingState;

/// Running tracking service. Call `stop` to write the waiting events.
#[derive(Debug)]
pub struct Tracking {
    state: Arc<TrackingState>,
    hosts: TrackingHosts,
    stop_sender: watch::Sender<bool>,
    writer_task: JoinHandle<()>,
    hosts_task: JoinHandle<()>,
}

impl Tracking {
    /// `secret` is the secret of the installation; `own_host` is the host name of links without a custom one.
    pub fn start(app: App, secret: &[u8; 32], own_host: &str) -> Self {
        let (stop_sender, stop) = watch::channel(false);
        let queue = Arc::new(EventQueue::default());
        let hosts = TrackingHosts::new(own_host);
        let writer_task = tokio::spawn(writer::run(app.clone(), Arc::clone(&queue), stop));
        let hosts_task = tokio::spawn(hosts.clone().reload_on_changes(app.clone()));
        let state = TrackingState { app, key: TrackKey::new(secret), agents: Agents::built_in(), queue };
        Self { state: Arc::new(state), hosts, stop_sender, writer_task, hosts_task }
    }

    /// Tracking routes, to be merged into a router that also has other routes.
    pub fn routes(&self) -> Router {
        routes::routes(Arc::clone(&self.state))
    }

    /// Router for host names that serve only tracking links.
    pub fn tracking_only_router(&self) -> Router {
        self.routes().fallback(async || pages::invalid_link())
    }

    /// Host names that serve only tracking links.
    pub fn hosts(&self) -> TrackingHosts {
        self.hosts.clone()
    }

    /// Writes the waiting events, within a time limit.
    pub async fn stop(self) {
        self.hosts_task.abort();
        self.stop_sender.send_replace(true);
        if let Err(error) = self.writer_task.await {
            tracing::error!(%error, "tracking: the writer panicked; waiting events are lost");
        }
    }
}
