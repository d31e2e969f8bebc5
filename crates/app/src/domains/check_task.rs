//! The periodic check of domains. Every node runs it; the store gives each domain to one of them.
//!
//! On failure (store unavailable) it tries again at the next turn. Stopping breaks checks off: nothing of them is recorded,
//! and they are due again a few minutes later.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::App;

/// How late a check may begin.
const EVERY: Duration = Duration::from_secs(5);
/// Checks at the same time: they mostly wait for strangers' name servers.
const AT_ONCE_MAX: usize = 20;

/// The running task; ends when it is dropped.
#[derive(Debug)]
pub struct DomainCheckTask {
    task: tokio::task::JoinHandle<()>,
}

impl DomainCheckTask {
    pub fn start(app: App) -> Self {
        let task = tokio::spawn(async move {
            let mut running = JoinSet::new();
            loop {
                let has_more = app.begin_checks(&mut running).await;
                // With all permits in use, go on as soon as one check ends; otherwise look for due domains periodically.
                tokio::select! {
                    Some(_) = running.join_next(), if has_more => {}
                    () = tokio::time::sleep(EVERY) => {}
                }
                while running.try_join_next().is_some() {}
            }
        });
        Self { task }
    }

    pub fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for DomainCheckTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl App {
    /// Begins as many checks as there is room for; whether more may be due.
    async fn begin_checks(&self, running: &mut JoinSet<()>) -> bool {
        if let Err(error) = self.inner.store.tell_domain_events().await {
            tracing::warn!(%error, "events of domains were not written; retrying with the next check");
        }
        let room = AT_ONCE_MAX - running.len();
        if room == 0 {
            return true;
        }
        let due = match self.inner.store.claim_due_domain_checks(room).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "reading due domain checks failed; retrying");
                return false;
            }
        };
        let has_more = due.len() == room;
        for id in due {
            let app = self.clone();
            running.spawn(async move {
                if let Err(error) = app.run_check(id).await {
                    tracing::warn!(domain.id = %id, %error, "domain check was not recorded; it is repeated in a few minutes");
                }
            });
        }
        has_more
    }
}
