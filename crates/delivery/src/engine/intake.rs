//! Takes fresh messages straight from the commit into the schedule, as long as the schedule has room for their server.
//! Without room the messages stay in the store, where the feeder finds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use postroad_model::ServerId;
use postroad_store::{FreshMessages, FreshSink};

use super::{EngineShared, bare_entry};
use crate::schedule::IntakeLimits;

#[derive(Debug)]
pub(crate) struct Intake(pub(crate) Arc<EngineShared>);

impl FreshSink for Intake {
    fn take(&self, fresh: FreshMessages) {
        let loaded_messages = self.0.preparer.take_fresh(&fresh);
        let require_tls = fresh.send.options.require_tls;
        self.0.with(|schedule, now| {
            for (index, recipient) in fresh.recipients.iter().enumerate() {
                let mut entry = bare_entry(&recipient.entry);
                entry.loaded_message =
                    loaded_messages.as_ref().map(|loaded_messages| Arc::clone(&loaded_messages[index]));
                schedule.add_due(recipient.entry.domain.clone(), require_tls, entry, now);
            }
        });
    }

    fn has_room(&self, server: ServerId) -> bool {
        self.0.intake_limits.has_room(server)
    }
}

/// Copy of the schedule's limits, read without the lock of the schedule.
#[derive(Debug, Default)]
pub(super) struct IntakeLimitsCopy {
    is_limited: AtomicBool,
    limits: RwLock<IntakeLimits>,
}

impl IntakeLimitsCopy {
    fn has_room(&self, server: ServerId) -> bool {
        !self.is_limited.load(Ordering::Acquire) || self.limits.read().has_room(server)
    }

    /// Call this under the schedule's lock, so that older limits never replace newer ones.
    pub(super) fn replace(&self, limits: IntakeLimits) {
        let is_limited = !limits.is_unlimited();
        *self.limits.write() = limits;
        self.is_limited.store(is_limited, Ordering::Release);
    }
}
