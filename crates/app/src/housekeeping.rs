//! Periodic background work. Stores when keys and sessions were last used. Deletes old idempotency keys and counts of
//! attempts, and expired suppressions, sessions and gates. Cancels expired holds. Sends notices about ceilings. Hands
//! the mail of deleted servers to the retention job, and removes deleted servers and accounts. If the store is
//! unavailable, it keeps the times that are not stored yet, and retries in the next round.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{ClockWatch, Timestamp};
use postroad_store::StoreError;
use tokio::time::Instant;

use crate::App;
use crate::send::IDEMPOTENCY_KEYS_KEPT;

/// Interval of rounds.
const ROUND_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of notices about ceilings. Short, because somebody should act on them.
const NOTICES_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of transactions for sending notices in one round.
const NOTICE_STEPS_MAX: usize = 20;
// Maximum numbers of rows changed in one transaction.
const PURGE_AT_ONCE: usize = 5_000;
const EXPIRE_AT_ONCE: usize = 500;
const SUPPRESSIONS_AT_ONCE: usize = 500;
const DELETED_AT_ONCE: usize = 100;
const CANCELLED_AT_ONCE: usize = 200;
/// Maximum number of transactions for removing deleted servers and accounts in one round.
const PURGE_STEPS_MAX: usize = 20;

/// Last use of keys or sessions, not stored yet.
#[derive(Debug)]
pub(crate) struct LastUses<Id> {
    at: Mutex<HashMap<Id, Timestamp>>,
}

impl<Id> Default for LastUses<Id> {
    fn default() -> Self {
        Self { at: Mutex::default() }
    }
}

impl<Id: Copy + Eq + Hash> LastUses<Id> {
    pub(crate) fn note(&self, id: Id, at: Timestamp) {
        self.at.lock().insert(id, at);
    }

    /// Stores the recorded times; keeps them if that fails.
    async fn store<F: Future<Output = Result<(), StoreError>>>(
        &self,
        store: impl FnOnce(Vec<(Id, Timestamp)>) -> F,
    ) -> Result<(), StoreError> {
        let used: Vec<(Id, Timestamp)> = self.at.lock().drain().collect();
        if used.is_empty() {
            return Ok(());
        }
        let stored = store(used.clone()).await;
        if stored.is_err() {
            self.at.lock().extend(used);
        }
        stored
    }
}

/// Running background task; call `stop` to store the last data.
#[derive(Debug)]
pub struct Housekeeping {
    app: App,
    task: tokio::task::JoinHandle<()>,
}

#[boxed_futures]
impl Housekeeping {
    pub fn start(app: App) -> Self {
        let worker = app.clone();
        let task = tokio::spawn(async move {
            let mut watch = ClockWatch::new(worker.now());
            let mut needs_correction = worker.inner.store.is_clock_behind();
            loop {
                needs_correction |= watch.went_back(worker.now()).is_some();
                if needs_correction {
                    match worker.inner.store.correct_holds_and_limits(IDEMPOTENCY_KEYS_KEPT).await {
                        Ok(()) => needs_correction = false,
                        Err(error) => {
                            tracing::warn!(%error, "correcting holds and limits after the clock went back failed; retrying");
                        }
                    }
                }
                worker.send_notices(ROUND_INTERVAL).await;
                if let Err(error) = worker.run_housekeeping().await {
                    tracing::warn!(%error, "housekeeping failed; retrying in 5 s");
                }
            }
        });
        Self { app, task }
    }

    pub async fn stop(self) {
        self.task.abort();
        if let Err(error) = self.app.store_last_uses().await {
            tracing::warn!(%error, "the last use of keys and sessions was not stored; it is lost");
        }
    }
}

#[boxed_futures]
impl App {
    /// One round of the background work, except notices about ceilings.
    pub async fn run_housekeeping(&self) -> Result<(), StoreError> {
        self.store_last_uses().await?;
        while self.inner.store.purge_idempotency_keys(PURGE_AT_ONCE).await? == PURGE_AT_ONCE as u64 {}
        while self.inner.store.expire_holds(EXPIRE_AT_ONCE).await? == EXPIRE_AT_ONCE as u64 {}
        while self.inner.store.remove_expired_suppressions(SUPPRESSIONS_AT_ONCE).await?
            == SUPPRESSIONS_AT_ONCE as u64
        {}
        while self.inner.store.purge_creations(PURGE_AT_ONCE).await? == PURGE_AT_ONCE as u64 {}
        while self.inner.store.end_deleted_servers(DELETED_AT_ONCE).await? == DELETED_AT_ONCE as u64 {}
        while self.inner.store.cancel_mail_of_ended_servers(CANCELLED_AT_ONCE).await? == CANCELLED_AT_ONCE {}
        while self.inner.store.purge_user_sessions(PURGE_AT_ONCE).await? == PURGE_AT_ONCE as u64 {}
        let begun_before = self.window_start();
        while self.inner.store.purge_attempts(begun_before, PURGE_AT_ONCE).await? == PURGE_AT_ONCE as u64 {}
        for _ in 0..PURGE_STEPS_MAX {
            if !self.inner.store.purge_deleted(self.links_until()).await? {
                break;
            }
        }
        self.inner.store.purge_gates().await?;
        Ok(())
    }

    /// Sends notices about ceilings until `duration` has passed.
    async fn send_notices(&self, duration: Duration) {
        let until = Instant::now() + duration;
        while Instant::now() < until {
            for _ in 0..NOTICE_STEPS_MAX {
                match self.inner.store.write_account_notices().await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        tracing::warn!(%error, "sending notices about ceilings failed; retrying in 1 s");
                        break;
                    }
                }
            }
            tokio::time::sleep(NOTICES_INTERVAL).await;
        }
    }

    async fn store_last_uses(&self) -> Result<(), StoreError> {
        let store = &self.inner.store;
        self.inner.used.store(|used| store.touch_credentials(used)).await?;
        self.inner.used_account_keys.store(|used| store.touch_account_keys(used)).await?;
        self.inner.used_sessions.store(|used| store.touch_user_sessions(used)).await
    }
}
