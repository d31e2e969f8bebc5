//! The embedded engine: one writer thread with group commit, a few reader threads, large bodies as files.
//!
//! On a full disk or an I/O error the current group is rolled back, and its callers get "unavailable". The connection
//! is reopened and the next group is tried, so the engine recovers by itself when the cause is gone.

mod accept;
mod body_files;
mod changes;
mod claims;
mod connection;
mod delivery;
mod finish;
mod operation;
mod queue;
mod readers;
pub(crate) mod rows;
mod scrub;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use parking_lot::Mutex;
use postroad_model::{IdGenerator, SendId, Timestamp};
use rusqlite::Connection;

use crate::accept::hand_over::HandOver;
use crate::accept::{Accepted, NewSend};
use crate::error::{OpenError, StoreError};
use crate::messages::StoredBody;
use crate::retention::bodies;
use crate::sql::Sql;
use crate::{Settings, SqlOperation};
use claims::Claims;
use operation::SqlWork;

/// Maximum number of body files that one batch writes at the same time.
const BODY_WRITES_CONCURRENT_MAX: usize = 8;

/// An open SQLite store. Dropping it lets the writer finish its work.
#[derive(Debug)]
pub(crate) struct Engine {
    // The fields are dropped in this order. So the writer's connection closes after the readers': closing the last
    // connection copies the write-ahead log into the database file. Then the lock is released.
    readers: readers::Readers,
    writer: writer::Writer,
    bodies: body_files::BodyFiles,
    /// Sends whose body files may have no row, because the writer failed.
    doubtful_bodies: Mutex<Vec<SendId>>,
    claims: Arc<Mutex<Claims>>,
    hand_over: Arc<HandOver>,
    /// Held by a batch of sends while it waits for its group, so that a single send waits for at most one batch.
    batch_lock: Box<tokio::sync::Mutex<()>>,
    disk: Box<DiskReserve>,
    path: PathBuf,
    /// Held as long as the store is open; excludes other processes.
    _lock: std::fs::File,
}

impl Engine {
    /// Opens or creates the database file. Returns the engine and the generator that continues its ids.
    pub(crate) fn open(
        path: &Path,
        settings: &Settings,
        hand_over: Arc<HandOver>,
        new_generator: &IdGeneratorFactory,
        now: Timestamp,
    ) -> Result<(Self, Arc<IdGenerator>), OpenError> {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        create_private_folder(&folder)?;
        let lock = lock_database(path)?;
        create_private_file(path)?;
        let mut connection = connection::open_writer(path)?;
        connection::migrate(&mut connection, now)?;
        let last_id: i64 = connection
            .query_row("SELECT last_id FROM nodes WHERE node = 0", [], |row| row.get(0))
            .map_err(StoreError::from)?;
        let ids = Arc::new(new_generator(last_id));
        let bodies = body_files::BodyFiles::open(folder.join("bodies"))?;
        bodies.sweep(&connection)?;
        let engine = Self {
            readers: readers::Readers::start(path, settings.reader_threads)?,
            writer: writer::Writer::start(path, connection, Arc::clone(&ids))?,
            bodies,
            doubtful_bodies: Mutex::default(),
            claims: Arc::default(),
            hand_over,
            batch_lock: Box::default(),
            disk: Box::new(DiskReserve {
                folder,
                reserve_bytes: settings.disk_reserve_bytes,
                last_check: Mutex::new(None),
            }),
            path: path.to_owned(),
            _lock: lock,
        };
        Ok((engine, ids))
    }

    pub(crate) async fn write<T: Send + 'static>(&self, operation: SqlOperation<T>) -> Result<T, StoreError> {
        self.writer.run(writer::NO_BYTES, SqlWork::new(operation)).await
    }

    pub(crate) async fn read<T: Send + 'static>(&self, operation: SqlOperation<T>) -> Result<T, StoreError> {
        self.readers.run(move |connection| run_now(operation, connection)).await
    }

    /// When this returns `Stored`, the sends are on stable storage: the group's commit was flushed.
    pub(crate) async fn accept(
        &self,
        sends: Vec<NewSend>,
        ids: Arc<IdGenerator>,
    ) -> Result<Accepted, StoreError> {
        self.disk.check()?;
        let files: Vec<SendId> =
            sends.iter().filter(|send| send.is_large()).map(|send| send.info.id).collect();
        self.write_bodies(&sends).await?;
        let is_batch = sends.len() > 1;
        let batch_guard = if is_batch { Some(self.batch_lock.lock().await) } else { None };
        let accepted = self.accept_in_group(sends, ids).await;
        drop(batch_guard);
        match &accepted {
            Ok(Accepted::Stored(_)) => self.remove_doubtful_bodies().await,
            // The group may be on disk although its flush was reported as failed.
            Err(StoreError::Unavailable(_)) => self.doubtful_bodies.lock().extend(files),
            Ok(Accepted::Repeated(_)) | Err(_) => {
                for id in files {
                    self.bodies.remove(id);
                }
            }
        }
        accepted
    }

    /// Writes large bodies to their files, several at the same time. On failure removes the files that were written.
    async fn write_bodies(&self, sends: &[NewSend]) -> Result<(), StoreError> {
        let large: Vec<&NewSend> = sends.iter().filter(|send| send.is_large()).collect();
        let mut written = Vec::new();
        for chunk in large.chunks(BODY_WRITES_CONCURRENT_MAX) {
            let writes = chunk.iter().map(|send| self.bodies.write(send.info.id, send.compressed().clone()));
            let mut failed = None;
            for (send, outcome) in chunk.iter().zip(join_all(writes).await) {
                match outcome {
                    Ok(()) => written.push(send.info.id),
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                for id in written {
                    self.bodies.remove(id);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Fails if so little disk space is free that nothing is accepted.
    pub(crate) fn check_disk(&self) -> Result<(), StoreError> {
        self.disk.check()
    }

    /// Fails when large bodies cannot be written.
    pub(crate) async fn check_bodies(&self) -> Result<(), StoreError> {
        self.bodies.check().await
    }

    /// Like `write`, for operations with a body: a large body is written to its file before the row that names the
    /// file. `is_stored` says whether the operation wrote that row.
    pub(crate) async fn write_with_body<T: Send + 'static>(
        &self,
        id: SendId,
        body: &StoredBody,
        operation: SqlOperation<T>,
        is_stored: impl FnOnce(&T) -> bool,
    ) -> Result<T, StoreError> {
        self.disk.check()?;
        if body.is_large() {
            self.bodies.write(id, body.compressed().clone()).await?;
        }
        let bytes = body.compressed().len();
        let written = self.writer.run(bytes, SqlWork::new(operation)).await;
        if body.is_large() {
            match &written {
                Ok(result) if is_stored(result) => self.remove_doubtful_bodies().await,
                Err(StoreError::Unavailable(_)) => self.doubtful_bodies.lock().push(id),
                _ => self.bodies.remove(id),
            }
        }
        written
    }

    /// Removes the files that failed groups left, unless a row names them. Called after a successful commit: earlier
    /// failed groups can no longer reappear then, because their part of the log is overwritten. The files do not wait
    /// for the sweep at the next start: if the disk was full, their space is needed now.
    async fn remove_doubtful_bodies(&self) {
        let doubtful = std::mem::take(&mut *self.doubtful_bodies.lock());
        for id in doubtful {
            match self.inline_body(id).await {
                Ok(None) => self.bodies.remove(id),
                Ok(Some(_)) => {}
                Err(_) => self.doubtful_bodies.lock().push(id),
            }
        }
    }

    pub(crate) async fn body(&self, send_id: SendId) -> Result<Option<Vec<u8>>, StoreError> {
        match self.inline_body(send_id).await? {
            None => Ok(None),
            Some(Some(inline)) => Ok(Some(inline)),
            Some(None) => self.bodies.read(send_id).await.map(Some),
        }
    }

    /// Removes some bodies: first their rows, then the files of the large ones.
    pub(crate) async fn remove_bodies(&self, old: Vec<SendId>) -> Result<u64, StoreError> {
        let operation: SqlOperation<_> =
            Box::new(move |sql| Box::pin(async move { bodies::remove_bodies(sql, &old).await }));
        let (rows, files) = self.write(operation).await?;
        for id in files {
            self.bodies.remove(id);
        }
        Ok(rows)
    }

    /// Like `remove_bodies`, but also overwrites the removed data.
    pub(crate) async fn erase_bodies(&self, sends: Vec<SendId>) -> Result<u64, StoreError> {
        let operation: SqlOperation<_> = Box::new(move |sql| {
            Box::pin(async move { sql.with_secure_delete(bodies::remove_bodies(sql, &sends)).await })
        });
        let (rows, files) = self.write(operation).await?;
        for id in files {
            self.bodies.erase(id).await;
        }
        Ok(rows)
    }

    /// The body in a row; `None` without a row, `Some(None)` if the row names a file.
    async fn inline_body(&self, send_id: SendId) -> Result<Option<Option<Vec<u8>>>, StoreError> {
        self.readers
            .run(move |connection| {
                let connection = connection.lock();
                let mut statement =
                    connection.prepare_cached("SELECT data FROM bodies WHERE send_id = ?1")?;
                let mut rows = statement.query([send_id.0])?;
                Ok(match rows.next()? {
                    None => None,
                    Some(row) => Some(row.get(0)?),
                })
            })
            .await
    }
}

/// Creates an id generator that continues after the highest id used before.
pub(crate) type IdGeneratorFactory = dyn Fn(i64) -> IdGenerator;

/// Runs an operation whose future never waits, because its `Sql` is a SQLite connection.
fn run_now<T>(operation: SqlOperation<T>, connection: &Mutex<Connection>) -> Result<T, StoreError> {
    let sql = Sql::Sqlite(connection);
    ready(operation(&sql))
}

/// The value of a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => unreachable!("statements on SQLite are done when their call returns"),
    }
}

/// Creates a folder that only its owner can access, because it contains mail and keys.
fn create_private_folder(folder: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(OpenError::io(folder))
}

/// Creates a file that only its owner can access. SQLite gives the log file the same mode.
fn create_private_file(path: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.open(path).map(drop).map_err(OpenError::io(path))
}

/// Locks the database for this process; the lock ends when the returned file is closed.
fn lock_database(path: &Path) -> Result<std::fs::File, OpenError> {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock_path = PathBuf::from(lock_path);
    // Anybody who can open the lock file can hold the lock and keep the service from starting.
    create_private_file(&lock_path)?;
    let file = std::fs::File::options().write(true).open(&lock_path).map_err(OpenError::io(&lock_path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::Locked(path.to_owned())),
        Err(std::fs::TryLockError::Error(source)) => Err(OpenError::Io { path: lock_path, source }),
    }
}

/// Keeps `reserve_bytes` of disk space free: with less, nothing new is accepted, so that outcomes of accepted messages
/// can still be written.
#[derive(Debug)]
struct DiskReserve {
    folder: PathBuf,
    reserve_bytes: u64,
    /// When the free space was last read, and how many bytes were free.
    last_check: Mutex<Option<(std::time::Instant, u64)>>,
}

impl DiskReserve {
    fn check(&self) -> Result<(), StoreError> {
        const CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);
        let mut last_check = self.last_check.lock();
        let free = match *last_check {
            Some((at, free)) if at.elapsed() < CHECK_INTERVAL => free,
            _ => {
                let free = fs4::available_space(&self.folder).unwrap_or(u64::MAX);
                *last_check = Some((std::time::Instant::now(), free));
                free
            }
        };
        if free < self.reserve_bytes {
            return Err(StoreError::Unavailable(format!("only {free} bytes of disk are free")));
        }
        Ok(())
    }
}
