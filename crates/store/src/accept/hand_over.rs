//! Hands freshly accepted messages to whoever delivers them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::RwLock;

use super::fresh::{Fresh, FreshSink};

/// Receiver of fresh messages; none as long as nobody delivers.
#[derive(Debug, Default)]
pub(crate) struct HandOver {
    sink: RwLock<Option<Arc<dyn FreshSink>>>,
}

impl HandOver {
    pub(crate) fn attach(&self, sink: Option<Arc<dyn FreshSink>>) {
        *self.sink.write() = sink;
    }

    pub(crate) fn sink(&self) -> Option<Sink> {
        self.sink.read().clone().map(Sink)
    }
}

pub(crate) struct Sink(Arc<dyn FreshSink>);

impl Sink {
    /// A bug in delivery must not take the thread that commits, and with it everybody's mail, down.
    pub(crate) fn take(&self, fresh: Fresh) {
        let (send_id, messages) = (fresh.send.id, fresh.recipients.len());
        if catch_unwind(AssertUnwindSafe(|| self.0.take(fresh))).is_err() {
            tracing::error!(send.id = %send_id, messages, "delivery panicked on new messages; they are sent after a restart");
        }
    }
}
