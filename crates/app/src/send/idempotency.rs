//! Repeated requests: the first request with a key is carried out, later requests get its answer. The store writes the
//! key in the accepting transaction. This module only avoids repeated work, and makes requests with the same key in one
//! process wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use postroad_model::{Limits, ServerId, Timestamp};
use postroad_store::{Idempotency, StoredAnswer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use crate::Refusal;

/// How long a request waits for the first request with the same key.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(5);
/// How long keys are kept.
pub(crate) const KEY_LIFETIME: Duration = Duration::from_hours(24);

/// An idempotency key, and the hash of its request without the key.
#[derive(Debug, Clone)]
pub struct IdempotencyRequest {
    pub key: String,
    pub fingerprint: [u8; 32],
}

/// An answer that is stored with its key.
pub(super) trait ReplayableAnswer: Serialize + DeserializeOwned {
    /// Marks the answer as that to an earlier request.
    fn mark_replayed(&mut self);
}

impl IdempotencyRequest {
    /// The key with the answer that repetitions get.
    pub(super) fn with_answer(&self, answer: &impl Serialize, now: Timestamp) -> Idempotency {
        Idempotency {
            key: self.key.clone(),
            fingerprint: self.fingerprint,
            answer: serde_json::to_string(answer).expect("answers have string keys"),
            expires_at: now.plus(KEY_LIFETIME),
        }
    }

    /// The answer to repeat, or a conflict if the key was used for another request.
    pub(super) fn replay<A: ReplayableAnswer>(&self, stored: &StoredAnswer) -> Result<A, Refusal> {
        if stored.fingerprint != self.fingerprint {
            return Err(Refusal::IdempotencyConflict);
        }
        let mut answer: A = serde_json::from_str(&stored.answer)
            // Without the error's text, which may quote a recipient.
            .map_err(|e| {
                Refusal::Internal(format!("a stored answer cannot be read at column {}", e.column()))
            })?;
        answer.mark_replayed();
        Ok(answer)
    }
}

/// Whether a text is a valid key: 1 to 256 printable characters.
pub fn is_idempotency_key(key: &str) -> bool {
    let is_printable = |c: char| !c.is_control() && c != char::REPLACEMENT_CHARACTER;
    (1..=Limits::IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.chars().count()) && key.chars().all(is_printable)
}

type Lock = tokio::sync::Mutex<()>;
type KeyLocks = HashMap<(ServerId, String), Weak<Lock>>;

/// Keys of requests in progress in this process.
#[derive(Debug, Default)]
pub(crate) struct InProgress {
    locks: Arc<Mutex<KeyLocks>>,
}

impl InProgress {
    /// Waits until no other request of this process uses the key.
    pub(super) async fn lock_key(
        &self,
        server_id: ServerId,
        key: &str,
        deadline: Instant,
    ) -> Result<KeyGuard, Refusal> {
        let (lock_reference, lock) = self.find_or_create_lock((server_id, key.to_owned()));
        match tokio::time::timeout_at(deadline, lock.lock_owned()).await {
            Ok(guard) => Ok(KeyGuard { _guard: guard, _lock_reference: lock_reference }),
            Err(_) => Err(Refusal::IdempotencyInProgress),
        }
    }

    fn find_or_create_lock(&self, server_and_key: (ServerId, String)) -> (LockReference, Arc<Lock>) {
        let mut locks = self.locks.lock();
        let known = locks.get(&server_and_key).and_then(Weak::upgrade);
        let lock = known.unwrap_or_else(|| {
            let lock = Arc::default();
            locks.insert(server_and_key.clone(), Arc::downgrade(&lock));
            lock
        });
        (
            LockReference { lock: Some(Arc::clone(&lock)), server_and_key, locks: Arc::clone(&self.locks) },
            lock,
        )
    }
}

/// Exclusive use of a key in this process. When it is dropped, the next request gets the key.
#[derive(Debug)]
pub(super) struct KeyGuard {
    /// Dropped before `_lock_reference`, which counts the references that are left.
    _guard: OwnedMutexGuard<()>,
    _lock_reference: LockReference,
}

/// A request's reference to the lock of its key, kept while the request waits for the key and uses it. Dropping the
/// last reference removes the key.
#[derive(Debug)]
struct LockReference {
    lock: Option<Arc<Lock>>,
    server_and_key: (ServerId, String),
    locks: Arc<Mutex<KeyLocks>>,
}

impl Drop for LockReference {
    fn drop(&mut self) {
        // While the map is locked, no other request can get a reference to the lock.
        let mut locks = self.locks.lock();
        self.lock.take();
        if locks.get(&self.server_and_key).is_some_and(|lock| lock.strong_count() == 0) {
            locks.remove(&self.server_and_key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_second_request_waits_for_the_first_with_a_timeout() {
        let in_progress = InProgress::default();
        let lock_key = |server, key| in_progress.lock_key(ServerId(server), key, Instant::now() + WAIT_MAX);
        let first = lock_key(1, "k").await.unwrap();
        let refused = lock_key(1, "k").await.unwrap_err();
        assert_eq!(refused, Refusal::IdempotencyInProgress);
        assert!(lock_key(2, "k").await.is_ok(), "keys are per server");
        drop(first);
        assert!(lock_key(1, "k").await.is_ok());
        assert!(in_progress.locks.lock().is_empty(), "nothing is left behind");
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_gives_up_leaves_nothing_behind() {
        let in_progress = InProgress::default();
        let lock_key = || in_progress.lock_key(ServerId(1), "k", Instant::now() + WAIT_MAX);
        let first = lock_key().await.unwrap();
        let mut second = Box::pin(lock_key());
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut second).await.is_err(), "it waits");
        drop(first);
        drop(second);
        assert!(in_progress.locks.lock().is_empty());
    }
}
