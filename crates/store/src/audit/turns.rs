//! Turns for recorded changes of messages on PostgreSQL. The entries of an account are numbered one after the other, so such
//! changes wait for each other. They wait here: in the database they would hold connections, and rows that everybody's
//! deliveries need.

use postroad_model::ServerId;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

/// Maximum number of concurrent changes on this node. Fewer than the connections, so that other work has some left.
const AT_ONCE: usize = 4;
/// Number of queues that servers share by id. Each queue has one turn at a time.
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
