//! Claims that this node knows of. A claim that was committed while its answer was lost (the caller disconnected, or
//! the connection died) belongs to nobody, and is released before the next claim.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use postroad_model::{MessageId, ServerId};

pub(super) type Key = (ServerId, MessageId);

#[derive(Debug, Default)]
pub(super) struct Claims {
    held: Mutex<HashSet<Key>>,
    /// One claim at a time; true while its result is unknown.
    claiming: tokio::sync::Mutex<bool>,
    /// An accept with claims may have been committed without our knowledge.
    accept_is_lost: AtomicBool,
}

/// The right to claim; one at a time.
pub(super) struct Turn<'a> {
    claims: &'a Claims,
    is_lost: tokio::sync::MutexGuard<'a, bool>,
}

impl Claims {
    pub(super) async fn begin(&self) -> Turn<'_> {
        Turn { claims: self, is_lost: self.claiming.lock().await }
    }

    pub(super) fn hold(&self, keys: impl IntoIterator<Item = Key>) {
        self.lock().extend(keys);
    }

    pub(super) fn forget<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) {
        let mut held = self.lock();
        for key in keys {
            held.remove(key);
        }
    }

    /// Records that an accept ended without a result: it may have claimed `keys`.
    pub(super) fn lose(&self, keys: &[Key]) {
        self.forget(keys);
        self.accept_is_lost.store(true, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.held.lock()
    }
}

impl Turn<'_> {
    /// The claims to keep when all others are released; `None` if none was lost. Until `end`, the result of this claim
    /// counts as unknown.
    pub(super) fn claims_to_keep(&mut self) -> Option<Vec<Key>> {
        let lost_by_accept = self.claims.accept_is_lost.swap(false, Ordering::AcqRel);
        let lost_by_claim = std::mem::replace(&mut *self.is_lost, true);
        (lost_by_accept || lost_by_claim).then(|| self.claims.lock().iter().copied().collect())
    }

    /// Records the messages that this turn claimed.
    pub(super) fn end(mut self, claimed: impl IntoIterator<Item = Key>) {
        self.claims.hold(claimed);
        *self.is_lost = false;
    }
}
