//! Long-lived parts of the portal, shared by all requests.

use std::sync::OnceLock;

use postroad_app::App;
use postroad_delivery::{Inbox, QueueAdmin, WarmUpPlan};
use postroad_events::WebhookTester;
use postroad_net::guarded_http::GuardedHttp;

use crate::live_permits::LivePermits;
use crate::work_permits::WorkPermits;

/// Parts of the service that the portal uses.
#[derive(Debug)]
pub struct PortalParts {
    pub app: App,
    /// Posts samples to webhooks.
    pub webhooks: WebhookTester,
    pub queue: QueueAdmin,
    /// The inbox of caught mail; `None` unless `catch_all` is on, as in `postroad dev`.
    pub inbox: Option<Inbox>,
    /// Loads remote pictures in mail.
    pub pictures: Option<GuardedHttp>,
    /// Daily quotas of addresses that warm up.
    pub warm_up: WarmUpPlan,
}

#[derive(Debug)]
pub(crate) struct PortalState {
    pub(crate) app: App,
    /// Posts samples to webhooks.
    pub(crate) webhooks: WebhookTester,
    /// Knows why messages wait.
    pub(crate) queue: QueueAdmin,
    /// The inbox of caught mail; `None` unless `catch_all` is on, as in `postroad dev`.
    pub(crate) inbox: Option<Inbox>,
    /// Loads remote pictures in mail, on request.
    pub(crate) pictures: Option<GuardedHttp>,
    /// Daily quotas of addresses that warm up.
    pub(crate) warm_up: WarmUpPlan,
    /// Permits for work that takes much memory or time.
    pub(crate) work: WorkPermits,
    /// Permits for event streams.
    pub(crate) live: LivePermits,
    smtp: OnceLock<SmtpAccess>,
    /// Base URLs of the service, the best one first.
    own_urls: OnceLock<Vec<String>>,
}

/// Host and ports of the SMTP relay, for the settings that pages show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpAccess {
    pub host: String,
    pub starttls_port: Option<u16>,
    pub tls_port: Option<u16>,
    /// Port of the bounce listener.
    pub bounce_port: Option<u16>,
}

impl PortalState {
    pub(crate) fn new(parts: PortalParts) -> Self {
        let PortalParts { app, webhooks, queue, inbox, pictures, warm_up } = parts;
        Self {
            app,
            webhooks,
            queue,
            inbox,
            pictures,
            warm_up,
            work: WorkPermits::default(),
            live: LivePermits::default(),
            smtp: OnceLock::new(),
            own_urls: OnceLock::new(),
        }
    }

    /// Later calls are ignored.
    pub(crate) fn set_smtp(&self, smtp: SmtpAccess) {
        self.smtp.get_or_init(|| smtp);
    }

    /// Later calls are ignored.
    pub(crate) fn set_own_urls(&self, urls: Vec<String>) {
        self.own_urls.get_or_init(|| urls);
    }

    /// Base URL by which the service reaches itself: the one that the browser uses, if the service knows it as its own;
    /// otherwise the best one that it knows.
    pub(crate) fn own_url(&self, used: &str) -> String {
        let known = self.own_urls.get().map(Vec::as_slice).unwrap_or_default();
        let is_known = known.iter().any(|url| url == used);
        if is_known { None } else { known.first() }.map_or_else(|| used.to_owned(), Clone::clone)
    }

    pub(crate) fn smtp(&self) -> Option<&SmtpAccess> {
        self.smtp.get()
    }
}
