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
use crate::send::IDEMPOTENCY_KEY_LIFETIME;

/// Interval of the rounds of housekeeping.
const ROUND_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of notices about ceilings. Short, because somebody should act on them.
const NOTICES_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of transactions for sending notices in one `NOTICES_INTERVAL`.
const NOTICE_STEPS_MAX: usize = 20;
// Maximum numbers of rows changed in one transaction.
const PURGED_ROWS_MAX: usize = 5_000;
const EXPIRED_HOLDS_MAX: usize = 500;
const EXPIRED_SUPPRESSIONS_MAX: usize = 500;
const DELETED_SERVERS_MAX: usize = 100;
const CANCELLED_MESSAGES_MAX: usize = 200;
/// Maximum number of transactions for removing deleted servers and accounts in one round.
const PURGE_STEPS_MAX: usize = 20;

/// Last use of keys or sessions, not stored yet.
#[derive(Debug)]
pub(crate) struct LastUses<Id> {
    times: Mutex<HashMap<Id, Timestamp>>,
}

impl<Id> Default for LastUses<Id> {
    fn default() -> Self {
        Self { times: Mutex::default() }
    }
}

impl<Id: Copy + Eq + Hash> LastUses<Id> {
    pub(crate) fn record(&self, id: Id, at: Timestamp) {
        self.times.lock().insert(id, at);
    }

    /// Passes the recorded times to `write`. If `write` fails, keeps them for the next round.
    async fn flush<F: Future<Output = Result<(), StoreError>>>(
        &self,
        write: impl FnOnce(Vec<(Id, Timestamp)>) -> F,
    ) -> Result<(), StoreError> {
        let used: Vec<(Id, Timestamp)> = self.times.lock().drain().collect();
        if used.is_empty() {
            return Ok(());
        }
        let stored = write(used.clone()).await;
        if stored.is_err() {
            let mut times = self.times.lock();
            for (id, used_at) in used {
                // A later use may have been recorded meanwhile.
                times.entry(id).or_insert(used_at);
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
                needs_correction |= watch.detect_step_back(worker.now()).is_some();
                if needs_correction {
                    match worker.inner.store.correct_holds_and_limits(IDEMPOTENCY_KEY_LIFETIME).await {
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
        round.record("last uses", self.store_last_uses().await);
        let purge = || store.purge_idempotency_keys(PURGED_ROWS_MAX);
        round.record("idempotency keys", repeat_while_full(purge, PURGED_ROWS_MAX).await);
        let expire = || store.expire_holds(EXPIRED_HOLDS_MAX);
        round.record("expired holds", repeat_while_full(expire, EXPIRED_HOLDS_MAX).await);
        let remove = || store.remove_expired_suppressions(EXPIRED_SUPPRESSIONS_MAX);
        round.record("expired suppressions", repeat_while_full(remove, EXPIRED_SUPPRESSIONS_MAX).await);
        let purge = || store.purge_creations(PURGED_ROWS_MAX);
        round.record("idempotency keys of accounts", repeat_while_full(purge, PURGED_ROWS_MAX).await);
        let end = || store.end_deleted_servers(DELETED_SERVERS_MAX);
        round.record("deleted servers", repeat_while_full(end, DELETED_SERVERS_MAX).await);
        let cancel =
            || async { Ok(store.cancel_mail_of_ended_servers(CANCELLED_MESSAGES_MAX).await? as u64) };
        round.record("mail of deleted servers", repeat_while_full(cancel, CANCELLED_MESSAGES_MAX).await);
        let purge = || store.purge_user_sessions(PURGED_ROWS_MAX);
        round.record("sessions", repeat_while_full(purge, PURGED_ROWS_MAX).await);
        let window_start = self.window_start();
        let purge = || store.purge_attempts(window_start, PURGED_ROWS_MAX);
        round.record("counts of attempts", repeat_while_full(purge, PURGED_ROWS_MAX).await);
        for _ in 0..PURGE_STEPS_MAX {
            if round.record("rows of deleted servers", store.purge_deleted(self.links_until()).await)
                != Some(true)
            {
                break;
            }
        }
        round.record("gates", store.purge_gates().await);
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
            self.inner.used_credentials.flush(|used| store.touch_credentials(used)).await,
            self.inner.used_account_keys.flush(|used| store.touch_account_keys(used)).await,
            self.inner.used_sessions.flush(|used| store.touch_user_sessions(used)).await,
        ];
        stored.into_iter().collect()
    }
}

/// Repeats a step that changes at most `rows_max` rows until it changes fewer.
async fn repeat_while_full<F>(mut step: impl FnMut() -> F, rows_max: usize) -> Result<(), StoreError>
where
    F: Future<Output = Result<u64, StoreError>>,
{
    while step().await? == rows_max as u64 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_use_during_a_failed_write_is_not_replaced_by_an_earlier_one() {
        let uses = LastUses::<u32>::default();
        let at = Timestamp::from_micros;
        uses.record(1, at(10));
        uses.record(2, at(10));
        let failed = uses.flush(|_| {
            uses.record(1, at(20));
            std::future::ready(Err(StoreError::Unavailable("the disk is full".into())))
        });
        assert!(failed.await.is_err());
        let mut stored = Vec::new();
        let done = uses.flush(|used| {
            stored = used;
            std::future::ready(Ok(()))
        });
        done.await.unwrap();
        stored.sort_unstable();
        assert_eq!(stored, [(1, at(20)), (2, at(10))]);
    }
}
