//! Hands freshly accepted messages to delivery.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::RwLock;
use postroad_model::ServerId;

use super::fresh_messages::{FreshMessages, FreshSink};

/// Holds delivery's sink for fresh messages; empty while delivery is not running.
#[derive(Debug, Default)]
pub(crate) struct HandOver {
    sink: RwLock<Option<Arc<dyn FreshSink>>>,
}

impl HandOver {
    pub(crate) fn set_sink(&self, sink: Option<Arc<dyn FreshSink>>) {
        *self.sink.write() = sink;
    }

    pub(crate) fn sink(&self) -> Option<Sink> {
        self.sink.read().clone().map(Sink)
    }
}

/// Delivery's sink for fresh messages, guarded against its panics.
pub(crate) struct Sink(Arc<dyn FreshSink>);

impl Sink {
    /// Whether delivery has room for this server's messages.
    pub(crate) fn has_room(&self, server: ServerId) -> bool {
        self.0.has_room(server)
    }

    /// Passes messages to delivery. Catches panics of delivery, which would otherwise end the writer thread (SQLite) or
    /// the batcher's task (PostgreSQL), and no mail would be accepted any more.
    pub(crate) fn take(&self, fresh: FreshMessages) {
        let (send_id, messages) = (fresh.send.id, fresh.recipients.len());
        if catch_unwind(AssertUnwindSafe(|| self.0.take(fresh))).is_err() {
            tracing::error!(send.id = %send_id, messages, "delivery panicked on new messages; they are sent after a restart");
        }
    }
}
