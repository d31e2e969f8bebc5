//! Task that counts events soon after they happen, and the catch-up before an analytics call is answered. On failure
//! nothing is lost: the events stay and are counted later.

use std::collections::HashMap;
use std::time::Duration;

use postroad_model::ServerId;
use postroad_store::{CountProgress, CountingRules, StoreError};

use crate::App;

/// Pause after each count of all events, because events counted together need fewer rows. Analytics calls do not wait
/// for the end of this pause.
const PAUSE_AFTER_COUNT: Duration = Duration::from_secs(3);
/// Longest wait, after the pause, for a notice of new events. Events of other nodes come without a notice.
const NOTICE_WAIT_MAX: Duration = Duration::from_secs(5);
/// Maximum number of batches, of up to 2,000 events each, that are counted for one server in a round.
const BATCHES_PER_ROUND: usize = 2;
/// Maximum number of batches that an analytics call waits for; then it is answered from the events counted so far.
const BATCHES_PER_CALL: usize = 10;

/// Handle of the running task.
#[derive(Debug)]
pub struct CounterTask {
    task: tokio::task::JoinHandle<()>,
}

impl CounterTask {
    pub fn start(app: App) -> Self {
        let mut notices = app.inner.store.event_notices();
        let task = tokio::spawn(async move {
            loop {
                match app.count_all().await {
                    Ok(()) => {}
                    Err(error) => tracing::warn!(%error, "counting events failed; retrying in a few seconds"),
                }
                tokio::time::sleep(PAUSE_AFTER_COUNT).await;
                // A timeout or an error also starts the next count.
                let _ = tokio::time::timeout(NOTICE_WAIT_MAX, notices.changed()).await;
            }
        });
        Self { task }
    }

    pub fn stop(self) {
        self.task.abort();
    }
}

impl App {
    pub(crate) fn counting_rules(&self) -> CountingRules {
        CountingRules { simulator_domain: self.inner.simulator_domain.clone() }
    }

    async fn count_all(&self) -> Result<(), StoreError> {
        let list = || self.inner.store.list_uncounted_servers();
        count_in_rounds(list, |server| self.count_batches(server, BATCHES_PER_ROUND)).await
    }

    async fn count_batches(&self, server: ServerId, batches_max: usize) -> Result<CountProgress, StoreError> {
        let rules = self.counting_rules();
        for _ in 0..batches_max {
            match self.inner.store.count_events(server, &rules).await? {
                CountProgress::MoreLeft => {}
                progress @ (CountProgress::AllDone | CountProgress::Overtaken) => return Ok(progress),
            }
        }
        Ok(CountProgress::MoreLeft)
    }

    /// Counts the server's uncounted events. Returns `false` if some may be left after `BATCHES_PER_CALL` batches.
    pub(super) async fn catch_up(&self, server: ServerId) -> Result<bool, StoreError> {
        let rules = self.counting_rules();
        for _ in 0..BATCHES_PER_CALL {
            match self.inner.store.count_events(server, &rules).await? {
                CountProgress::AllDone => return Ok(true),
                // `Overtaken`: usually, another node has counted this batch. Try the next one.
                CountProgress::MoreLeft | CountProgress::Overtaken => {}
            }
        }
        Ok(false)
    }
}

/// Calls `count_server` for every server with uncounted events, in rounds, until no server has events left. Each round
/// lists the servers again, so that a server with few events does not wait for a busy one. A server that fails is left
/// out of further rounds, and one of the errors is returned at the end. If the store is unavailable, the rounds end at
/// once.
async fn count_in_rounds<L, T>(
    list: impl Fn() -> L,
    count_server: impl Fn(ServerId) -> T,
) -> Result<(), StoreError>
where
    L: Future<Output = Result<Vec<ServerId>, StoreError>>,
    T: Future<Output = Result<CountProgress, StoreError>>,
{
    // An error of one server must not end the counting of other servers.
    let mut failed: HashMap<ServerId, StoreError> = HashMap::new();
    loop {
        let mut has_more = false;
        for server in list().await? {
            if failed.contains_key(&server) {
                continue;
            }
            match count_server(server).await {
                Ok(progress) => has_more |= progress == CountProgress::MoreLeft,
                Err(error @ StoreError::Unavailable(_)) => return Err(error),
                Err(error) => drop(failed.insert(server, error)),
            }
        }
        if !has_more {
            return failed.into_values().next().map_or(Ok(()), Err);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::ready;

    use super::*;

    const BUSY: ServerId = ServerId(1);
    const QUIET: ServerId = ServerId(2);

    #[tokio::test]
    async fn a_server_with_few_events_does_not_wait_for_one_with_many() {
        let counted_servers = RefCell::new(Vec::new());
        // The quiet server's event arrives while the busy server is being counted.
        let list = || {
            let counted = counted_servers.borrow();
            let is_new = !counted.is_empty() && !counted.contains(&QUIET);
            ready(Ok(if is_new { vec![BUSY, QUIET] } else { vec![BUSY] }))
        };
        let count_server = |server| {
            counted_servers.borrow_mut().push(server);
            let is_over = server == QUIET || counted_servers.borrow().len() > 100;
            ready(Ok(if is_over { CountProgress::AllDone } else { CountProgress::MoreLeft }))
        };
        count_in_rounds(list, count_server).await.unwrap();
        assert_eq!(counted_servers.borrow()[..4], [BUSY, BUSY, QUIET, BUSY]);
    }

    #[tokio::test]
    async fn a_server_whose_events_cannot_be_counted_does_not_stop_the_others() {
        let counted_servers = RefCell::new(Vec::new());
        let count_server = |server| {
            counted_servers.borrow_mut().push(server);
            let damaged = || StoreError::Internal("damaged".into());
            let rest = if counted_servers.borrow().len() < 4 {
                CountProgress::MoreLeft
            } else {
                CountProgress::AllDone
            };
            ready(if server == BUSY { Err(damaged()) } else { Ok(rest) })
        };
        let result = count_in_rounds(|| ready(Ok(vec![BUSY, QUIET])), count_server).await;
        assert!(matches!(result, Err(StoreError::Internal(_))));
        assert_eq!(
            *counted_servers.borrow(),
            [BUSY, QUIET, QUIET, QUIET],
            "the others go on until they are done"
        );
    }
}
