//! Publishes a report about this node in the store, for the portal: host, version, start, listeners and certificate.

use std::sync::Arc;
use std::time::Duration;

use postroad_app::App;
use postroad_net::{CertificateFiles, ReloadingCertificate};
use postroad_store::{CertificateNote, NodeDescription};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How often the files of the certificate are read.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// Running task that publishes the report.
#[derive(Debug)]
pub(crate) struct NodeReport {
    /// Wakes the task before its minute is over.
    wake: Arc<Notify>,
    task: JoinHandle<()>,
}

struct Reporter {
    app: App,
    description: NodeDescription,
    certificate: Option<Arc<ReloadingCertificate>>,
}

impl NodeReport {
    /// Starts the task; returns after the first report. If the store does not take a report, the task tries again a
    /// minute later.
    pub(crate) async fn start(
        app: App,
        description: NodeDescription,
        certificate: Option<Arc<ReloadingCertificate>>,
    ) -> Self {
        let mut reporter = Reporter { app, description, certificate };
        let mut is_stored = reporter.publish(false).await;
        let wake = Arc::new(Notify::new());
        let wake_signal = Arc::clone(&wake);
        let task = tokio::spawn(async move {
            loop {
                // Publishes when woken, and every minute.
                let _ = tokio::time::timeout(CHECK_INTERVAL, wake_signal.notified()).await;
                is_stored = reporter.publish(is_stored).await;
            }
        });
        Self { wake, task }
    }

    /// Publishes a report now. Called after the certificate was reloaded.
    pub(crate) fn republish(&self) {
        self.wake.notify_one();
    }

    pub(crate) fn stop(self) {
        self.task.abort();
    }
}

impl Reporter {
    /// Stores the description if it has changed, or if the store does not have it yet (`is_stored` is false). Returns
    /// whether the store has the current description.
    async fn publish(&mut self, is_stored: bool) -> bool {
        let certificate = match self.certificate.clone() {
            Some(certificate) => {
                tokio::task::spawn_blocking(move || certificate_note(&certificate)).await.ok()
            }
            None => None,
        };
        if is_stored && certificate == self.description.certificate {
            return true;
        }
        self.description.certificate = certificate;
        match self.app.describe_node(&self.description).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "storing this node's status report failed; retrying in a minute");
                false
            }
        }
    }
}

fn certificate_note(certificate: &ReloadingCertificate) -> CertificateNote {
    let status = certificate.status();
    let (file_problem, is_replaced) = match status.files {
        CertificateFiles::InUse => (None, false),
        CertificateFiles::Replaced => (None, true),
        CertificateFiles::Unusable(error) => (Some(error.to_string()), false),
    };
    CertificateNote { expires_at: status.expires_at, file_problem, is_replaced }
}
