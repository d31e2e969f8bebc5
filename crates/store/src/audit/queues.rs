//! Queues for audited changes of messages, on PostgreSQL. An account's audit entries are numbered one after the other,
//! so these changes wait for each other in the database. While they wait, they hold connections and rows that
//! deliveries need. To keep such transactions few, changes of one server wait for each other in memory, and a node runs
//! at most `CHANGES_MAX` changes at once.

use postroad_model::ServerId;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

/// Maximum number of concurrent changes on this node. Few, so that other work has database connections left, unless the
/// connection pool has only four (the minimum).
const CHANGES_MAX: usize = 4;
/// Servers are spread over this many queues by id; each queue admits one change at a time.
const QUEUES: usize = 256;

/// The queues of this node.
#[derive(Debug)]
pub(crate) struct AuditQueues {
    queues: Vec<Mutex<()>>,
    permits: Semaphore,
}

/// The right to make a change; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct AuditPermit<'a> {
    _server_guard: MutexGuard<'a, ()>,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Default for AuditQueues {
    fn default() -> Self {
        let queues = std::iter::repeat_with(Mutex::default).take(QUEUES).collect();
        Self { queues, permits: Semaphore::new(CHANGES_MAX) }
    }
}

impl AuditQueues {
    /// Waits until a change of a message of this server may begin.
    pub(crate) async fn wait(&self, server_id: ServerId) -> AuditPermit<'_> {
        let queue = server_id.0.unsigned_abs() as usize % QUEUES;
        let server_guard = self.queues[queue].lock().await;
        // The semaphore is never closed.
        AuditPermit { _server_guard: server_guard, _permit: self.permits.acquire().await.ok() }
    }
}
