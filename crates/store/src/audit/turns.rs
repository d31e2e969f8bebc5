//! Turns of changes of messages that the audit log records, on PostgreSQL. An account's audit entries are numbered one
//! after the other, so these changes would wait for each other in the database, where they hold connections and rows
//! that deliveries need. They wait here instead, in a queue by server.

use postroad_model::ServerId;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

/// Maximum number of concurrent changes on this node. Fewer than the connections, so that other work has some left.
const AT_ONCE: usize = 4;
/// Servers are spread over this many queues by id; each queue admits one change at a time.
const QUEUES: usize = 256;

#[derive(Debug)]
pub(crate) struct AuditTurns {
    queues: Vec<Mutex<()>>,
    at_once: Semaphore,
}

/// The right to make a change; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    _of_server: MutexGuard<'a, ()>,
    _of_all: Option<SemaphorePermit<'a>>,
}

impl Default for AuditTurns {
    fn default() -> Self {
        let queues = std::iter::repeat_with(Mutex::default).take(QUEUES).collect();
        Self { queues, at_once: Semaphore::new(AT_ONCE) }
    }
}

impl AuditTurns {
    pub(crate) async fn wait(&self, server_id: ServerId) -> Turn<'_> {
        let queue = server_id.0.unsigned_abs() as usize % QUEUES;
        let of_server = self.queues[queue].lock().await;
        // The semaphore is never closed.
        Turn { _of_server: of_server, _of_all: self.at_once.acquire().await.ok() }
    }
}
