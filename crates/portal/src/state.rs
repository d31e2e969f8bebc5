//! Long-lived parts of the portal, shared by all requests.

use std::sync::OnceLock;

use postroad_app::App;
use postroad_events::WebhookTester;
use tokio::sync::Semaphore;

/// Messages that are read and parsed for a page at the same time: each may have 25 MiB.
const BODIES_MAX: usize = 4;
/// Pages that update themselves at the same time.
const LIVE_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct PortalState {
    pub(crate) app: App,
    /// Posts samples to webhooks.
    pub(crate) webhooks: WebhookTester,
    /// Permits for reading the bodies of messages.
    pub(crate) bodies: Semaphore,
    /// Permits for event streams.
    pub(crate) live: std::sync::Arc<Semaphore>,
    smtp: OnceLock<SmtpAccess>,
}

/// Host and ports of the SMTP relay, for the settings that pages show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpAccess {
    pub host: String,
    pub starttls_port: Option<u16>,
    pub tls_port: Option<u16>,
}

impl PortalState {
    pub(crate) fn new(app: App, webhooks: WebhookTester) -> Self {
        Self {
            app,
            webhooks,
            bodies: Semaphore::new(BODIES_MAX),
            live: std::sync::Arc::new(Semaphore::new(LIVE_MAX)),
            smtp: OnceLock::new(),
        }
    }

    /// Later calls are ignored.
    pub(crate) fn set_smtp(&self, smtp: SmtpAccess) {
        self.smtp.get_or_init(|| smtp);
    }

    pub(crate) fn smtp(&self) -> Option<&SmtpAccess> {
        self.smtp.get()
    }
}
