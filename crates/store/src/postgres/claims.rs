//! Claims that this node knows of. A claim that was committed without confirmation (the caller disconnected, or the
//! connection died) belongs to nobody, and is released before the next claim.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use postroad_model::{MessageId, ServerId};

/// Key of a message, and of its queue entry.
pub(super) type Key = (ServerId, MessageId);

#[derive(Debug, Default)]
pub(super) struct Claims {
    known: Mutex<HashSet<Key>>,
    /// Locked during a claim. True from the start of a claim until its result is known.
    is_unconfirmed: tokio::sync::Mutex<bool>,
    /// Whether an accept with claims may have been committed without confirmation.
    has_lost_accept: AtomicBool,
}

/// The right to claim; only one exists at a time.
pub(super) struct ClaimPermit<'a> {
    claims: &'a Claims,
    is_unconfirmed: tokio::sync::MutexGuard<'a, bool>,
}

impl Claims {
    pub(super) async fn acquire(&self) -> ClaimPermit<'_> {
        ClaimPermit { claims: self, is_unconfirmed: self.is_unconfirmed.lock().await }
    }

    pub(super) fn add(&self, keys: impl IntoIterator<Item = Key>) {
        self.lock().extend(keys);
    }

    pub(super) fn forget<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) {
        let mut known = self.lock();
        for key in keys {
            known.remove(key);
        }
    }

    /// Records that an accept ended without a result: it may have claimed `keys`.
    pub(super) fn note_lost_accept(&self, keys: &[Key]) {
        self.forget(keys);
        self.has_lost_accept.store(true, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.known.lock()
    }
}

impl ClaimPermit<'_> {
    /// Marks this claim as unconfirmed. Returns the known claims if an earlier claim was lost: all other claims of this
    /// node must then be released.
    pub(super) fn start(&mut self) -> Option<Vec<Key>> {
        let lost_by_accept = self.claims.has_lost_accept.swap(false, Ordering::AcqRel);
        let lost_by_claim = std::mem::replace(&mut *self.is_unconfirmed, true);
        (lost_by_accept || lost_by_claim).then(|| self.claims.lock().iter().copied().collect())
    }

    /// Records the messages that this claim returned.
    pub(super) fn confirm(mut self, claimed: impl IntoIterator<Item = Key>) {
        self.claims.add(claimed);
        *self.is_unconfirmed = false;
    }
}
