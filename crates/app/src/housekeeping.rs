//! Periodic background work. Stores when keys and sessions were last used. Deletes old idempotency keys and counts of
//! attempts (`users/attempts.rs`), and expired suppressions, sessions, links and gates. Ends expired holds. Sends
//! notices about ceilings. Cancels the mail of deleted servers that can no longer be restored, and hands it to the
//! retention task; then removes such servers and accounts. Corrects stored times after the clock went back.
//!
//! A step that fails is repeated in the next round and does not keep the other steps from running.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{ClockWatch, Timestamp};
use postroad_store::StoreError;
use tokio::time::Instant;

use crate::App;
use crate::failed_steps::{FailedSteps, Round};
use crate::send::IDEMPOTENCY_KEYS_KEPT;

/// Interval of the rounds of housekeeping.
const ROUND_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of notices about ceilings. Short, because somebody should act on them.
const NOTICES_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of transactions for sending notices in one `NOTICES_INTERVAL`.
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

    /// Stores the recorded times. If the store fails, keeps them for the next round.
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
            let mut at = self.at.lock();
            for (id, used_at) in used {
                // A later use may have been recorded meanwhile.
                at.entry(id).or_insert(used_at);
            }
        }
        stored
    }
}

/// The running background task. Call `stop` to store the last uses that are not stored yet.
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
                    tracing::warn!(%error, "some steps of housekeeping failed; retrying in 5 s");
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
    /// One round of the background work, except notices about ceilings and corrections after the clock went back. Runs
    /// all steps, even if some fail.
    pub async fn run_housekeeping(&self) -> Result<(), FailedSteps> {
        let (store, mut round) = (&self.inner.store, Round::default());
        let begun_before = self.window_start();
        round.take("last uses", self.store_last_uses().await);
        let purge = || store.purge_idempotency_keys(PURGE_AT_ONCE);
        round.take("idempotency keys", repeat(purge, PURGE_AT_ONCE).await);
        let expire = || store.expire_holds(EXPIRE_AT_ONCE);
        round.take("expired holds", repeat(expire, EXPIRE_AT_ONCE).await);
        let remove = || store.remove_expired_suppressions(SUPPRESSIONS_AT_ONCE);
        round.take("expired suppressions", repeat(remove, SUPPRESSIONS_AT_ONCE).await);
        let purge = || store.purge_creations(PURGE_AT_ONCE);
        round.take("idempotency keys of accounts", repeat(purge, PURGE_AT_ONCE).await);
        let end = || store.end_deleted_servers(DELETED_AT_ONCE);
        round.take("deleted servers", repeat(end, DELETED_AT_ONCE).await);
        let cancel = || async { Ok(store.cancel_mail_of_ended_servers(CANCELLED_AT_ONCE).await? as u64) };
        round.take("mail of deleted servers", repeat(cancel, CANCELLED_AT_ONCE).await);
        let purge = || store.purge_user_sessions(PURGE_AT_ONCE);
        round.take("sessions", repeat(purge, PURGE_AT_ONCE).await);
        let purge = || store.purge_attempts(begun_before, PURGE_AT_ONCE);
        round.take("counts of attempts", repeat(purge, PURGE_AT_ONCE).await);
        for _ in 0..PURGE_STEPS_MAX {
            if round.take("rows of deleted servers", store.purge_deleted(self.links_until()).await)
                != Some(true)
            {
                break;
            }
        }
        round.take("gates", store.purge_gates().await);
        round.end()
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
        let stored = [
            self.inner.used.store(|used| store.touch_credentials(used)).await,
            self.inner.used_account_keys.store(|used| store.touch_account_keys(used)).await,
            self.inner.used_sessions.store(|used| store.touch_user_sessions(used)).await,
        ];
        stored.into_iter().collect()
    }
}

/// Repeats a step that changes at most `at_once` rows until it changes fewer.
async fn repeat<F>(mut step: impl FnMut() -> F, at_once: usize) -> Result<(), StoreError>
where
    F: Future<Output = Result<u64, StoreError>>,
{
    while step().await? == at_once as u64 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_use_during_a_failed_write_is_not_replaced_by_an_earlier_one() {
        let uses = LastUses::<u32>::default();
        let at = Timestamp::from_micros;
        uses.note(1, at(10));
        uses.note(2, at(10));
        let failed = uses.store(|_| {
            uses.note(1, at(20));
            std::future::ready(Err(StoreError::Unavailable("the disk is full".into())))
        });
        assert!(failed.await.is_err());
        let mut stored = Vec::new();
        let done = uses.store(|used| {
            stored = used;
            std::future::ready(Ok(()))
        });
        done.await.unwrap();
        stored.sort_unstable();
        assert_eq!(stored, [(1, at(20)), (2, at(10))]);
    }
}
