//! Claims of this node that it knows of. A claim that was committed while its answer was lost (the caller
//! hung up, or the connection died) is nobody's, and goes back before the next one.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use postroad_model::{MessageId, ServerId};

pub(super) type Key = (ServerId, MessageId);

#[derive(Debug, Default)]
pub(super) struct Claims {
    held: Mutex<HashSet<Key>>,
    /// One claim at a time; true while its end is unknown.
    claiming: tokio::sync::Mutex<bool>,
    /// An accept that claims may have been committed without our knowing.
    accept_is_lost: AtomicBool,
}

pub(super) struct Turn<'a> {
    claims: &'a Claims,
    is_lost: tokio::sync::MutexGuard<'a, bool>,
}

impl Claims {
    pub(super) async fn begin(&self) -> Turn<'_> {
        Turn { claims: self, is_lost: self.claiming.lock().await }
    }

    pub(super) fn hold(&self, keys: impl IntoIterator<Item = Key>) {
        self.held().extend(keys);
    }

    pub(super) fn forget<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) {
        let mut held = self.held();
        for key in keys {
            held.remove(key);
        }
    }

    /// Of `keys`, which an accept was to claim, it is not known whether they are.
    pub(super) fn lose(&self, keys: &[Key]) {
        self.forget(keys);
        self.accept_is_lost.store(true, Ordering::Release);
    }

    fn held(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.held.lock()
    }
}

impl Turn<'_> {
    /// Claims to keep when the others are given back; `None` if all are known. From here to `end` none is.
    pub(super) fn held_if_some_are_lost(&mut self) -> Option<Vec<Key>> {
        let lost_by_accept = self.claims.accept_is_lost.swap(false, Ordering::AcqRel);
        let lost_by_claim = std::mem::replace(&mut *self.is_lost, true);
        (lost_by_accept || lost_by_claim).then(|| self.claims.held().iter().copied().collect())
    }

    pub(super) fn end(mut self, claimed: impl IntoIterator<Item = Key>) {
        self.claims.hold(claimed);
        *self.is_lost = false;
    }
}
