//! Reader threads: each owns a read-only connection and takes the next query from one bounded queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::connection;
use crate::error::{OpenError, StoreError};

const QUEUE_LENGTH: usize = 4_096;
/// How long a query waits for room in the queue before it fails.
const ENQUEUE_WAIT_MAX: Duration = Duration::from_secs(10);

type ReadJob = Box<dyn FnOnce(&Mutex<Connection>) + Send>;

#[derive(Debug)]
pub(super) struct Readers {
    /// `None` only while `Readers` is being dropped.
    queue: Option<mpsc::Sender<ReadJob>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(path: &Path, threads: usize) -> Result<Self, OpenError> {
        let (queue, waiting) = mpsc::channel::<ReadJob>(QUEUE_LENGTH);
        let waiting = Arc::new(Mutex::new(waiting));
        let start = |number: usize| {
            let connection = Mutex::new(connection::open_reader(path)?);
            let waiting = Arc::clone(&waiting);
            thread::Builder::new()
                .name(format!("store-reader-{number}"))
                .spawn(move || {
                    // The thread with the lock waits for the next query; the others wait for the lock.
                    let take = || waiting.lock().blocking_recv();
                    while let Some(job) = take() {
                        job(&connection);
                    }
                })
                .map_err(OpenError::io(path))
        };
        let threads = (0..threads.max(1)).map(start).collect::<Result<_, _>>()?;
        Ok(Self { queue: Some(queue), threads })
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Mutex<Connection>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run_or_undo(work, drop).await
    }

    /// Runs a query. `undo` gets the result if the caller disconnected before the result arrived.
    pub(super) async fn run_or_undo<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Mutex<Connection>) -> Result<T, StoreError> + Send + 'static,
        undo: impl FnOnce(T) + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, answer) = oneshot::channel();
        let job = Box::new(move |connection: &Mutex<Connection>| {
            let result = catch_unwind(AssertUnwindSafe(|| work(connection)))
                .unwrap_or_else(|_| Err(StoreError::Internal("a store query panicked".into())));
            if let Err(Ok(unwanted)) = sender.send(result) {
                undo(unwanted);
            }
        });
        let closed = || StoreError::Unavailable("the store is closed".into());
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        match tokio::time::timeout(ENQUEUE_WAIT_MAX, queue.send(job)).await {
            Ok(Ok(())) => answer.await.unwrap_or_else(|_| Err(closed())),
            Ok(Err(_)) => Err(closed()),
            Err(_) => Err(StoreError::Unavailable("too many queries are waiting".into())),
        }
    }
}

impl Drop for Readers {
    /// Waits until the connections are closed.
    fn drop(&mut self) {
        drop(self.queue.take());
        for thread in self.threads.drain(..) {
            // The thread does not panic: queries run in `catch_unwind`.
            let _ = thread.join();
        }
    }
}
