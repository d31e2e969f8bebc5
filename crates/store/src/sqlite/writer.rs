//! Group commit: one thread owns the write connection, runs everything that waits in one transaction, flushes
//! once, and then answers all callers. No timed window: while one group is flushed the next one gathers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use postroad_model::IdGenerator;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::connection;
use crate::error::{OpenError, StoreError};

const GROUP_OPERATIONS_MAX: usize = 1_024;
const GROUP_BYTES_MAX: usize = 4 << 20;
/// Operations differ: one that tells many webhooks writes thousands of rows.
const GROUP_ROWS_MAX: u64 = 10_000;
/// How many operations may wait; more callers wait outside, which is the back-pressure.
const QUEUE_LENGTH: usize = 4_096;
/// How long a caller waits for a place in the queue before it is told to try again.
const ENQUEUE_WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Writer {
    /// `None` only while it is dropped.
    queue: Option<mpsc::Sender<Operation>>,
    thread: Option<JoinHandle<()>>,
}

/// Work of one caller. `run` does it inside the group's transaction and gives back what to call after the commit.
struct Operation {
    bytes: usize,
    run: Run,
}

struct Done {
    error: Option<StoreError>,
    answer: Answer,
}

type Run = Box<dyn FnOnce(&Mutex<Connection>) -> Done + Send>;
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

impl Writer {
    pub(super) fn start(
        path: &Path,
        connection: Connection,
        ids: Arc<IdGenerator>,
    ) -> Result<Self, OpenError> {
        let (queue, waiting) = mpsc::channel(QUEUE_LENGTH);
        let mut writer =
            WriterThread { path: path.to_owned(), connection: Mutex::new(connection), ids, noted_id: 0 };
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer.work(waiting))
            .map_err(OpenError::io(path))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `work` in the next group. The answer comes after the group's commit was flushed.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&Mutex<Connection>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run_then(bytes, work, |_| {}).await
    }

    /// Like `run`; `after` sees the result right after the commit or rollback, even if the caller hung up.
    pub(super) async fn run_then<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&Mutex<Connection>) -> Result<T, StoreError> + Send + 'static,
        after: impl FnOnce(&Result<T, StoreError>) + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, answer) = oneshot::channel();
        let run = Box::new(move |connection: &Mutex<Connection>| {
            // A bug in one operation must not take the writer, and with it everybody's mail, down.
            let result = catch_unwind(AssertUnwindSafe(|| work(connection)))
                .unwrap_or_else(|_| Err(StoreError::Internal("a store operation panicked".into())));
            let error = result.as_ref().err().cloned();
            let answer: Answer = Box::new(move |committed| {
                let result = committed.and(result);
                after(&result);
                // The caller may be gone (its client hung up); what it wanted is done all the same.
                let _ = sender.send(result);
            });
            Done { error, answer }
        });
        let closed = || StoreError::Unavailable("the store is closed".into());
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        match tokio::time::timeout(ENQUEUE_WAIT_MAX, queue.send(Operation { bytes, run })).await {
            Ok(Ok(())) => answer
                .await
                .unwrap_or_else(|_| Err(StoreError::Unavailable("the operation could not be begun".into()))),
            Ok(Err(_)) => Err(closed()),
            Err(_) => Err(StoreError::Unavailable("too many operations are waiting".into())),
        }
    }
}

impl Drop for Writer {
    /// Waits until everything it was given is written and the connection is closed: whoever opens the file next must
    /// find it all there.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // It does not panic: operations are run in `catch_unwind`.
            let _ = thread.join();
        }
    }
}

struct WriterThread {
    path: PathBuf,
    connection: Mutex<Connection>,
    ids: Arc<IdGenerator>,
    /// The highest id the database knows of.
    noted_id: i64,
}

impl WriterThread {
    fn work(&mut self, mut waiting: mpsc::Receiver<Operation>) {
        while let Some(first) = waiting.blocking_recv() {
            let mut answers = Vec::new();
            let outcome = self.group(first, &mut waiting, &mut answers);
            if let Err(error) = &outcome {
                tracing::error!(%error, operations = answers.len(), "a group was not written");
                self.reopen();
            }
            for answer in answers {
                answer(outcome.clone());
            }
        }
    }

    /// Runs `first` and everything that waits behind it in one transaction.
    fn group(
        &mut self,
        first: Operation,
        waiting: &mut mpsc::Receiver<Operation>,
        answers: &mut Vec<Answer>,
    ) -> Result<(), StoreError> {
        let mut bytes = 0;
        let rows_before = self.rows_written();
        let mut next = Some(first);
        // An operation that is dropped unrun answers its caller "try again".
        self.execute("BEGIN IMMEDIATE")?;
        while let Some(operation) = next {
            bytes += operation.bytes;
            self.execute("SAVEPOINT one")?;
            let done = (operation.run)(&self.connection);
            answers.push(done.answer);
            self.end_one(done.error)?;
            let rows = self.rows_written().saturating_sub(rows_before);
            let room =
                answers.len() < GROUP_OPERATIONS_MAX && bytes < GROUP_BYTES_MAX && rows < GROUP_ROWS_MAX;
            next = if room { waiting.try_recv().ok() } else { None };
        }
        self.note_ids()?;
        self.execute("COMMIT")
    }

    /// Keeps what one operation did, or takes it back if it failed, and leaves those before it.
    fn end_one(&self, error: Option<StoreError>) -> Result<(), StoreError> {
        match error {
            None => self.execute("RELEASE one"),
            // SQLite may have rolled the whole transaction back: nobody in this group was served.
            Some(error @ StoreError::Unavailable(_)) => Err(error),
            Some(_) => {
                self.execute("ROLLBACK TO one")?;
                self.execute("RELEASE one")
            }
        }
    }

    /// Remembers the highest id in the same commit as what carries it, so that a restart never hands it out again.
    fn note_ids(&mut self) -> Result<(), StoreError> {
        let last = self.ids.last();
        if last > self.noted_id {
            let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            connection.prepare_cached("UPDATE nodes SET last_id = ?1 WHERE node = 0")?.execute([last])?;
            self.noted_id = last;
        }
        Ok(())
    }

    /// Since the connection was opened.
    fn rows_written(&self) -> u64 {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).total_changes()
    }

    fn execute(&self, text: &str) -> Result<(), StoreError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.prepare_cached(text)?.execute([])?;
        Ok(())
    }

    /// After a failed group the old connection may hold pages that never reached the disk: read the file anew.
    fn reopen(&mut self) {
        self.noted_id = 0;
        {
            let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            if !connection.is_autocommit()
                && let Err(error) = connection.execute_batch("ROLLBACK")
            {
                tracing::warn!(%error, "rolling back");
            }
        }
        match connection::open_writer(&self.path) {
            Ok(connection) => self.connection = Mutex::new(connection),
            Err(error) => tracing::warn!(%error, "opening the database again; keeping the old connection"),
        }
    }
}
