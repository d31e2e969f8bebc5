//! The periodic check of domains. Every node runs it; the store gives each domain to one of them.
//!
//! On failure (store unavailable) it tries again at the next turn. Stopping breaks checks off: nothing of them is recorded,
//! and they are due again a few minutes later.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use postroad_model::AccountId;
use tokio::task::JoinSet;

use crate::App;

/// How late a check may begin, unless checks are less than this apart.
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
            let mut running = Running::default();
            let pause = EVERY.min(app.inner.check_intervals.shortest);
            loop {
                app.begin_checks(&mut running).await;
                // A check that ends makes room for another one.
                tokio::select! {
                    () = running.one_ends(), if !running.checks.is_empty() => {}
                    () = tokio::time::sleep(pause) => {}
                }
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

/// Checks that have not ended, counted by account.
#[derive(Default)]
struct Running {
    checks: JoinSet<AccountId>,
    by_account: HashMap<AccountId, usize>,
}

impl Running {
    async fn one_ends(&mut self) {
        // Checks do not panic; a failed one is logged.
        if let Some(Ok(account)) = self.checks.join_next().await {
            self.end(account);
        }
        while let Some(Ok(account)) = self.checks.try_join_next() {
            self.end(account);
        }
    }

    fn end(&mut self, account: AccountId) {
        if let Entry::Occupied(mut count) = self.by_account.entry(account) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl App {
    /// Begins as many checks as there is room for.
    async fn begin_checks(&self, running: &mut Running) {
        if let Err(error) = self.inner.store.tell_domain_events().await {
            tracing::warn!(%error, "events of domains were not written; retrying with the next check");
        }
        let room = AT_ONCE_MAX - running.checks.len();
        if room == 0 {
            return;
        }
        let claiming = self.inner.store.claim_due_domain_checks(room, running.by_account.clone());
        let due = match claiming.await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "reading due domain checks failed; retrying");
                return;
            }
        };
        for (id, account) in due {
            let app = self.clone();
            *running.by_account.entry(account).or_default() += 1;
            running.checks.spawn(async move {
                if let Err(error) = app.run_check(id).await {
                    tracing::warn!(domain.id = %id, %error, "domain check was not recorded; it is repeated in a few minutes");
                }
                account
            });
        }
    }
}
