//! Group commit: one thread owns the write connection, runs all waiting operations in one transaction, flushes once,
//! and then answers all callers. There is no timed window: operations that arrive while a group is flushed form the
//! next group.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use postroad_model::IdGenerator;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::connection;
use super::operation::{Operation, PendingOp, Work};
use crate::error::{OpenError, StoreError};

const GROUP_OPERATIONS_MAX: usize = 1_024;
const GROUP_BYTES_MAX: usize = 4 << 20;
/// A group ends once it has written this many rows: an event with many webhooks writes thousands.
const GROUP_ROWS_MAX: u64 = 10_000;
/// Length of the queue of operations. If it is full, callers wait for room: that is the back-pressure.
const QUEUE_LENGTH: usize = 4_096;
/// Longest wait for room in the queue, before the caller gets `Unavailable`.
const ENQUEUE_WAIT_MAX: Duration = Duration::from_secs(10);

/// `bytes` of work that need not count towards the group's maximum size.
pub(super) const NO_BYTES: usize = 0;

#[derive(Debug)]
pub(super) struct Writer {
    /// `None` only while `Writer` is being dropped.
    queue: Option<mpsc::Sender<QueuedOperation>>,
    thread: Option<JoinHandle<()>>,
}

/// A queued operation, with its share of the group's size.
struct QueuedOperation {
    bytes: usize,
    operation: Box<dyn Operation>,
}

impl Writer {
    pub(super) fn start(
        path: &Path,
        connection: Connection,
        ids: Arc<IdGenerator>,
    ) -> Result<Self, OpenError> {
        let (queue, waiting) = mpsc::channel(QUEUE_LENGTH);
        let mut writer =
            WriterThread { path: path.to_owned(), connection: Mutex::new(connection), ids, stored_id: 0 };
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer.work(waiting))
            .map_err(OpenError::io(path))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `work` in the next group. Returns after the group's commit was flushed. `bytes` counts towards the group's
    /// maximum size.
    pub(super) async fn run<W: Work>(&self, bytes: usize, work: W) -> Result<W::Output, StoreError> {
        let (caller, answer) = oneshot::channel();
        let waiting = QueuedOperation { bytes, operation: Box::new(PendingOp::new(work, caller)) };
        let closed = || StoreError::Unavailable("the store is closed".into());
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        match tokio::time::timeout(ENQUEUE_WAIT_MAX, queue.send(waiting)).await {
            Ok(Ok(())) => answer
                .await
                .unwrap_or_else(|_| Err(StoreError::Unavailable("the operation could not be begun".into()))),
            Ok(Err(_)) => Err(closed()),
            Err(_) => Err(StoreError::Unavailable("too many operations are waiting".into())),
        }
    }
}

impl Drop for Writer {
    /// Waits until all queued work is written and the connection is closed: the next process to open the file must find
    /// everything there.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic: operations run in `catch_unwind`.
            let _ = thread.join();
        }
    }
}

struct WriterThread {
    path: PathBuf,
    connection: Mutex<Connection>,
    ids: Arc<IdGenerator>,
    /// The highest id that the database has stored; 0 if this connection has not stored one.
    stored_id: i64,
}

impl WriterThread {
    fn work(&mut self, mut waiting: mpsc::Receiver<QueuedOperation>) {
        while let Some(first) = waiting.blocking_recv() {
            // On a busy processor, lets callers that are about to enqueue go first, so that they share the commit. On
            // an idle processor, the yield has no effect.
            thread::yield_now();
            let mut done = Vec::new();
            let outcome = self.run_group(first, &mut waiting, &mut done);
            if let Err(error) = &outcome {
                tracing::error!(%error, operations = done.len(), "writing a group of operations failed; their callers get an error (503 over HTTP)");
                self.reopen();
            }
            for operation in done {
                operation.answer(outcome.clone());
            }
        }
    }

    /// Runs `first` and all waiting operations in one transaction.
    fn run_group(
        &mut self,
        first: QueuedOperation,
        waiting: &mut mpsc::Receiver<QueuedOperation>,
        done: &mut Vec<Box<dyn Operation>>,
    ) -> Result<(), StoreError> {
        let mut bytes = 0;
        let rows_before = self.rows_written();
        // Index in `done` of the first operation that shares the current savepoint.
        let mut shared_from = None;
        let mut next = Some(first);
        // If this fails, the first operation is dropped without an answer, and its caller gets `Unavailable`.
        self.execute("BEGIN IMMEDIATE")?;
        while let Some(QueuedOperation { bytes: more, operation }) = next {
            bytes += more;
            if operation.is_repeatable() {
                self.run_shared(operation, &mut shared_from, done)?;
            } else {
                if shared_from.take().is_some() {
                    self.execute("RELEASE one")?;
                }
                done.push(operation);
                self.run_alone(done.last_mut())?;
            }
            let rows = self.rows_written().saturating_sub(rows_before);
            let has_room =
                done.len() < GROUP_OPERATIONS_MAX && bytes < GROUP_BYTES_MAX && rows < GROUP_ROWS_MAX;
            next = if has_room { waiting.try_recv().ok() } else { None };
        }
        if shared_from.is_some() {
            self.execute("RELEASE one")?;
        }
        self.store_last_id()?;
        self.execute("COMMIT")
    }

    /// Runs an operation under a savepoint shared with its neighbours. If the operation fails, all operations under the
    /// savepoint are rolled back and run again one by one.
    fn run_shared(
        &self,
        operation: Box<dyn Operation>,
        shared_from: &mut Option<usize>,
        done: &mut Vec<Box<dyn Operation>>,
    ) -> Result<(), StoreError> {
        if shared_from.is_none() {
            self.execute("SAVEPOINT one")?;
        }
        let from = *shared_from.get_or_insert(done.len());
        done.push(operation);
        let Some(Err(error)) = done.last_mut().map(|operation| operation.run(&self.connection)) else {
            return Ok(());
        };
        self.roll_back(error)?;
        *shared_from = None;
        done[from..].iter_mut().try_for_each(|operation| self.run_alone(Some(operation)))
    }

    /// Runs an operation under its own savepoint. If the operation fails, only its own changes are rolled back.
    fn run_alone(&self, operation: Option<&mut Box<dyn Operation>>) -> Result<(), StoreError> {
        self.execute("SAVEPOINT one")?;
        match operation.map(|operation| operation.run(&self.connection)) {
            Some(Err(error)) => self.roll_back(error),
            _ => self.execute("RELEASE one"),
        }
    }

    fn roll_back(&self, error: StoreError) -> Result<(), StoreError> {
        // SQLite may have rolled back the whole transaction: no operation of this group succeeded.
        if matches!(error, StoreError::Unavailable(_)) {
            return Err(error);
        }
        self.execute("ROLLBACK TO one")?;
        self.execute("RELEASE one")
    }

    /// Stores the highest id in the same commit as the rows that use it, so that no id is used again after a restart.
    fn store_last_id(&mut self) -> Result<(), StoreError> {
        let last = self.ids.last();
        if last > self.stored_id {
            let connection = self.connection.lock();
            connection.prepare_cached("UPDATE nodes SET last_id = ?1 WHERE node = 0")?.execute([last])?;
            self.stored_id = last;
        }
        Ok(())
    }

    /// Rows written since the connection was opened.
    fn rows_written(&self) -> u64 {
        self.connection.lock().total_changes()
    }

    fn execute(&self, text: &str) -> Result<(), StoreError> {
        let connection = self.connection.lock();
        connection.prepare_cached(text)?.execute([])?;
        Ok(())
    }

    /// After a failed group the old connection may hold pages that never reached the disk, so the file is reopened.
    fn reopen(&mut self) {
        self.stored_id = 0;
        {
            let connection = self.connection.lock();
            if !connection.is_autocommit()
                && let Err(error) = connection.execute_batch("ROLLBACK")
            {
                tracing::warn!(%error, "rolling back a failed group failed; the connection is reopened");
            }
        }
        match connection::open_writer(&self.path) {
            Ok(connection) => self.connection = Mutex::new(connection),
            Err(error) => tracing::warn!(%error, "reopening the database failed; keeping the old connection"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Writes its number, and may then fail.
    struct Insert {
        number: i64,
        fails: bool,
        is_slow: bool,
        runs: Arc<AtomicUsize>,
    }

    impl Work for Insert {
        type Output = i64;
        const IS_REPEATABLE: bool = true;

        fn run(&mut self, connection: &Mutex<Connection>) -> Result<i64, StoreError> {
            self.runs.fetch_add(1, Ordering::Relaxed);
            let connection = connection.lock();
            connection.execute("INSERT INTO numbers VALUES (?1)", [self.number]).unwrap();
            if self.is_slow {
                thread::sleep(Duration::from_millis(300));
            }
            if self.fails { Err(StoreError::Internal("it is a bad number".into())) } else { Ok(self.number) }
        }
    }

    #[tokio::test]
    async fn a_failed_operation_does_not_affect_the_others_of_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.db");
        let connection = connection::open_writer(&path).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE numbers (number INTEGER PRIMARY KEY);
                 CREATE TABLE nodes (node INTEGER PRIMARY KEY, last_id INTEGER);",
            )
            .unwrap();
        let ids = Arc::new(IdGenerator::new(Arc::new(postroad_model::SystemClock), 0, 0));
        let writer = Writer::start(&path, connection, ids).unwrap();
        let runs: Arc<AtomicUsize> = Arc::default();
        let insert = |number, fails| {
            let work = Insert { number, fails, is_slow: number == 0, runs: Arc::clone(&runs) };
            writer.run(NO_BYTES, work)
        };
        // The first one is slow: the others queue behind it and share one group.
        let results = tokio::join!(insert(0, false), insert(1, false), insert(2, true), insert(3, false));
        assert_eq!((results.0.unwrap(), results.1.unwrap(), results.3.unwrap()), (0, 1, 3));
        assert!(matches!(results.2, Err(StoreError::Internal(_))));
        assert!(runs.load(Ordering::Relaxed) > 4, "some operations ran again");
        drop(writer);
        let kept = Connection::open(&path).unwrap().query_row(
            "SELECT group_concat(number) FROM numbers",
            [],
            |row| row.get::<_, String>(0),
        );
        assert_eq!(kept.unwrap(), "0,1,3");
    }
}
