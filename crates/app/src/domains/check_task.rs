//! Task that checks domains periodically. It also writes the events of domains that earlier transactions left waiting.
//! Every node runs the task; the store assigns each due check to one node.
//!
//! If the store is unavailable, the task tries again after a pause. Stopping the task aborts running checks: these
//! record nothing, and are due again a few minutes later.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use postroad_model::AccountId;
use tokio::task::{Id, JoinError, JoinSet};

use crate::App;

/// Interval at which the task looks for due checks; shorter if the check interval is shorter.
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// Maximum number of concurrent checks; they mostly wait for other people's name servers.
const CONCURRENT_CHECKS_MAX: usize = 20;

/// Handle of the running task, which ends when the handle is dropped.
#[derive(Debug)]
pub struct DomainCheckTask {
    task: tokio::task::JoinHandle<()>,
}

impl DomainCheckTask {
    pub fn start(app: App) -> Self {
        let task = tokio::spawn(async move {
            let mut running = RunningChecks::default();
            let pause = POLL_INTERVAL_MAX.min(app.inner.check_intervals.shortest);
            loop {
                app.begin_checks(&mut running).await;
                // Wait for the end of a check, because another one can begin then.
                tokio::select! {
                    () = running.wait_for_one(), if !running.checks.is_empty() => {}
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

/// Running checks, counted by account.
#[derive(Default)]
struct RunningChecks {
    checks: JoinSet<()>,
    /// Account of each running check, by the id of its task.
    accounts: HashMap<Id, AccountId>,
    /// Number of running checks of each account.
    by_account: HashMap<AccountId, usize>,
}

impl RunningChecks {
    fn begin(&mut self, account: AccountId, check: impl Future<Output = ()> + Send + 'static) {
        *self.by_account.entry(account).or_default() += 1;
        let task = self.checks.spawn(check);
        self.accounts.insert(task.id(), account);
    }

    async fn wait_for_one(&mut self) {
        let mut ended = self.checks.join_next_with_id().await;
        while let Some(result) = ended {
            self.end(result);
            ended = self.checks.try_join_next_with_id();
        }
    }

    /// Removes an ended check from the counts, even if the check panicked.
    fn end(&mut self, result: Result<(Id, ()), JoinError>) {
        let task = match result {
            Ok((task, ())) => task,
            Err(error) => {
                tracing::error!(%error, "a domain check failed; it is repeated in a few minutes");
                error.id()
            }
        };
        let account = self.accounts.remove(&task);
        if let Some(Entry::Occupied(mut count)) = account.map(|account| self.by_account.entry(account)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl App {
    /// Writes the waiting events of domains, then begins as many due checks as the limit allows.
    async fn begin_checks(&self, running: &mut RunningChecks) {
        if let Err(error) = self.inner.store.write_domain_events().await {
            tracing::warn!(%error, "events of domains were not written; retrying in a few seconds");
        }
        let free = CONCURRENT_CHECKS_MAX - running.checks.len();
        if free == 0 {
            return;
        }
        let claiming = self.inner.store.claim_due_domain_checks(free, running.by_account.clone());
        let due = match claiming.await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "reading due domain checks failed; retrying in a few seconds");
                return;
            }
        };
        for (id, account) in due {
            let app = self.clone();
            running.begin(account, async move {
                if let Err(error) = app.run_check(id).await {
                    tracing::warn!(domain.id = %id, %error, "domain check was not recorded; it is repeated in a few minutes");
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panicked_check_is_removed_from_the_counts_of_running_checks() {
        let mut running = RunningChecks::default();
        running.begin(AccountId(1), async { panic!("a damaged record") });
        running.begin(AccountId(1), std::future::pending());
        running.begin(AccountId(2), async {});
        while running.by_account.len() > 1 {
            running.wait_for_one().await;
        }
        assert_eq!(running.by_account, HashMap::from([(AccountId(1), 1)]));
        assert_eq!((running.checks.len(), running.accounts.len()), (1, 1));
    }
}
