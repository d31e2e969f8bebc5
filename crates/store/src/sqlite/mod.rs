//! The embedded engine: one writer thread with group commit, a few reader threads, large bodies as files.
//!
//! On failure (full disk, I/O error) the group being written is rolled back and answered "unavailable", the
//! connection is opened anew, and the next group is tried: it recovers by itself when the cause is gone.

mod accept;
mod body_files;
mod claims;
mod connection;
mod finish;
mod queue;
mod readers;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postroad_model::{IdGenerator, MessageId, SendId, Timestamp};
use rusqlite::Connection;

use crate::error::{OpenError, StoreError};
use crate::hand_over::HandOver;
use crate::records::{Accepted, Begin, Begun, Claimed, Fresh, NewSend, Outcome};
use crate::sql::Sql;
use crate::verbs::desk::Entry;
use crate::verbs::finish::SourceCounts;
use crate::{Job, JobWithIds, Settings};
use claims::{After, Claims, Key};

/// An open SQLite store. Dropping it lets the writer finish what it was given.
#[derive(Debug)]
pub(crate) struct Engine {
    // Dropped in this order: the writer closes last, which empties the log into the file, and only then the lock goes.
    readers: readers::Readers,
    writer: writer::Writer,
    bodies: body_files::BodyFiles,
    /// Files whose rows were not written, as far as the failed writer could tell.
    doubtful_bodies: Mutex<Vec<SendId>>,
    claims: Arc<Mutex<Claims>>,
    hand_over: Arc<HandOver>,
    disk: DiskReserve,
    /// Held as long as the store is open; keeps other processes out.
    _lock: std::fs::File,
}

impl Engine {
    /// Opens or creates the database file. Returns the engine and the generator that continues its ids.
    pub(crate) fn open(
        path: &Path,
        settings: &Settings,
        hand_over: Arc<HandOver>,
        ids: &IdsAfter,
    ) -> Result<(Self, Arc<IdGenerator>), OpenError> {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        create_private_folder(&folder)?;
        let lock = lock_out_others(path)?;
        create_private_file(path)?;
        let mut connection = connection::open_writer(path)?;
        connection::migrate(&mut connection)?;
        let last_id: i64 = connection
            .query_row("SELECT last_id FROM nodes WHERE node = 0", [], |row| row.get(0))
            .map_err(StoreError::from)?;
        let ids = Arc::new(ids(last_id));
        let bodies = body_files::BodyFiles::open(folder.join("bodies"))?;
        bodies.sweep(&connection)?;
        let engine = Self {
            readers: readers::Readers::start(path, settings.reader_threads)?,
            writer: writer::Writer::start(path, connection, Arc::clone(&ids))?,
            bodies,
            doubtful_bodies: Mutex::default(),
            claims: Arc::default(),
            hand_over,
            disk: DiskReserve { folder, reserve: settings.disk_reserve_bytes, checked: Mutex::new(None) },
            _lock: lock,
        };
        Ok((engine, ids))
    }

    pub(crate) async fn write<T: Send + 'static>(&self, job: Job<T>) -> Result<T, StoreError> {
        self.writer.run(0, move |connection| run_now(job, connection)).await
    }

    pub(crate) async fn read<T: Send + 'static>(&self, job: Job<T>) -> Result<T, StoreError> {
        self.readers.run(move |connection| run_now(job, connection)).await
    }

    /// When this returns `Stored`, the send is on stable storage: the group's commit was flushed.
    pub(crate) async fn accept(&self, send: NewSend, ids: Arc<IdGenerator>) -> Result<Accepted, StoreError> {
        self.disk.check()?;
        let file = send.is_large().then_some(send.info.id);
        if let Some(id) = file {
            self.bodies.write(id, send.compressed().clone()).await?;
        }
        let accepted = self.accept_in_group(send, ids).await;
        match (file, &accepted) {
            (_, Ok(Accepted::Stored)) => self.remove_doubtful_bodies().await,
            // The group may be on disk although its flush was reported as failed.
            (Some(id), Err(StoreError::Unavailable(_))) => lock(&self.doubtful_bodies).push(id),
            (Some(id), Ok(Accepted::Repeated(_)) | Err(StoreError::Internal(_))) => self.bodies.remove(id),
            _ => {}
        }
        accepted
    }

    /// While somebody delivers, what is pending is claimed for it before the commit, and handed over after it.
    async fn accept_in_group(&self, send: NewSend, ids: Arc<IdGenerator>) -> Result<Accepted, StoreError> {
        let (claims, claims_after) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        let sink = self.hand_over.sink();
        let is_delivered = sink.is_some();
        let done = Arc::new(Mutex::new(None));
        let done_after = Arc::clone(&done);
        self.writer
            .run_then(
                send.weight(),
                move |connection| {
                    let accept::Written { accepted, queued } = accept::accept(connection, &send, &ids)?;
                    if is_delivered {
                        let mut claims = lock(&claims);
                        for entry in queued.iter().filter(|entry| entry.pending) {
                            claims.hold((send.info.server_id, entry.message_id), entry.due_at);
                        }
                    }
                    *lock(&done) = Some((send, queued));
                    Ok(accepted)
                },
                move |result| {
                    let Some((send, queued)) = lock(&done_after).take() else { return };
                    let server_id = send.info.server_id;
                    let (fresh, other): (Vec<_>, Vec<_>) =
                        queued.into_iter().partition(|entry| is_delivered && entry.pending);
                    let fresh: Vec<MessageId> = fresh.into_iter().map(|entry| entry.message_id).collect();
                    {
                        let mut claims = lock(&claims_after);
                        if result.is_err() {
                            fresh.iter().for_each(|id| claims.release((server_id, *id)));
                            claims.look_again();
                            return;
                        }
                        other.iter().for_each(|entry| {
                            claims.note_queued((server_id, entry.message_id), entry.due_at)
                        });
                    }
                    if let Some(sink) = sink.filter(|_| !fresh.is_empty()) {
                        sink.take(Fresh::of(send, &fresh));
                    }
                },
            )
            .await
    }

    /// After a commit, groups that failed before it can no longer come back to life: what they wrote to the log is
    /// overwritten. Files that they left and no row names are garbage then, on a disk that may just have been full.
    async fn remove_doubtful_bodies(&self) {
        let doubtful = std::mem::take(&mut *lock(&self.doubtful_bodies));
        for id in doubtful {
            match self.inline_body(id).await {
                Ok(None) => self.bodies.remove(id),
                Ok(Some(_)) => {}
                Err(_) => lock(&self.doubtful_bodies).push(id),
            }
        }
    }

    pub(crate) async fn body(&self, send_id: SendId) -> Result<Option<Vec<u8>>, StoreError> {
        match self.inline_body(send_id).await? {
            Some(None) => self.bodies.read(send_id).await.map(Some),
            other => Ok(other.flatten()),
        }
    }

    /// `None` without a row, `Some(None)` if the row names a file.
    async fn inline_body(&self, send_id: SendId) -> Result<Option<Option<Vec<u8>>>, StoreError> {
        self.readers
            .run(move |connection| {
                let connection = lock(connection);
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

    /// Hands out due entries that nobody has.
    pub(crate) async fn claim(&self, due_by: Timestamp, limit: usize) -> Result<Vec<Claimed>, StoreError> {
        let (claims, undo) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        self.readers
            .run_or_undo(
                move |connection| queue::claim(connection, &claims, due_by, limit),
                move |unwanted: Vec<Claimed>| queue::release(&undo, unwanted.iter().map(Claimed::key)),
            )
            .await
    }

    pub(crate) async fn adopt(&self, keys: Vec<Key>) -> Result<Vec<Claimed>, StoreError> {
        let (claims, undo) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        self.readers
            .run_or_undo(
                move |connection| queue::adopt(connection, &claims, &keys),
                move |unwanted: Vec<Claimed>| queue::release(&undo, unwanted.iter().map(Claimed::key)),
            )
            .await
    }

    pub(crate) async fn begin(&self, entries: Vec<Begin>, now: Timestamp) -> Result<Vec<Begun>, StoreError> {
        if !entries.iter().any(|entry| entry.needs_message) {
            return Ok(queue::begin_fresh(&self.claims, &entries));
        }
        let (claims, undo) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        let undone = entries.clone();
        self.readers
            .run_or_undo(
                move |connection| queue::begin(connection, &claims, &entries, now),
                move |unheard: Vec<Begun>| queue::undo_begin(&undo, &undone, &unheard),
            )
            .await
    }

    pub(crate) async fn finish(
        &self,
        outcomes: Vec<Outcome>,
        ids: Arc<IdGenerator>,
    ) -> Result<Vec<bool>, StoreError> {
        let (claims, claims_after) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        let settling: Arc<Mutex<Vec<(Key, Option<After>)>>> = Arc::default();
        let settling_after = Arc::clone(&settling);
        self.writer
            .run_then(
                0,
                move |connection| {
                    let connection = lock(connection);
                    let (mut settled, mut counts) =
                        (Vec::with_capacity(outcomes.len()), SourceCounts::default());
                    for outcome in &outcomes {
                        if !lock(&claims).begin_settling(outcome.key()) {
                            settled.push(false);
                            continue;
                        }
                        lock(&settling).push((outcome.key(), None));
                        let after = finish::settle(&connection, outcome, &ids)?;
                        settled.push(after.is_some());
                        if let Some((_, noted)) = lock(&settling).last_mut().filter(|_| after.is_some()) {
                            *noted = after;
                            counts.add(outcome);
                        }
                    }
                    finish::count_sources(&connection, &counts)?;
                    Ok(settled)
                },
                move |result| {
                    let mut claims = lock(&claims_after);
                    for (key, after) in lock(&settling_after).drain(..) {
                        match result {
                            Ok(_) => claims.end_settling(key, after),
                            Err(_) => claims.undo_settling(key),
                        }
                    }
                },
            )
            .await
    }

    /// Changes a message that nobody has begun; `too_late` if somebody has. A claim of it is over.
    pub(crate) async fn change_waiting<T: Send + 'static>(
        &self,
        key: Key,
        ids: Arc<IdGenerator>,
        too_late: T,
        job: JobWithIds<(T, Entry)>,
    ) -> Result<(T, Entry), StoreError> {
        let (claims, claims_after) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        let is_ours = Arc::new(AtomicBool::new(false));
        let is_ours_after = Arc::clone(&is_ours);
        self.writer
            .run_then(
                0,
                move |connection| {
                    {
                        let mut claims = lock(&claims);
                        if claims.is_begun(key) {
                            return Ok((too_late, Entry::Unchanged));
                        }
                        is_ours.store(claims.begin_settling(key), Ordering::Relaxed);
                    }
                    ready(job(&Sql::Sqlite(connection), ids))
                },
                move |result| {
                    let mut claims = lock(&claims_after);
                    let is_ours = is_ours_after.load(Ordering::Relaxed);
                    match result {
                        Ok((_, Entry::Gone)) if is_ours => claims.end_settling(key, Some(After::Gone)),
                        Ok((_, Entry::Queued(due_at))) if is_ours => {
                            claims.end_settling(key, Some(After::Queued(*due_at)));
                        }
                        Ok((_, Entry::Queued(due_at))) => claims.note_queued(key, *due_at),
                        Ok(_) if is_ours => claims.undo_settling(key),
                        Err(_) => {
                            claims.look_again();
                            if is_ours {
                                claims.undo_settling(key);
                            }
                        }
                        Ok(_) => {}
                    }
                },
            )
            .await
    }

    pub(crate) fn is_claimed(&self, key: Key) -> bool {
        lock(&self.claims).is_held(key)
    }

    pub(crate) fn release(&self, keys: Vec<Key>) {
        queue::release(&self.claims, keys);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the id generator from the highest id handed out before.
pub(crate) type IdsAfter = dyn Fn(i64) -> IdGenerator;

/// Runs a verb whose future never waits, because its `Sql` is a SQLite connection.
fn run_now<T>(job: Job<T>, connection: &Mutex<Connection>) -> Result<T, StoreError> {
    let sql = Sql::Sqlite(connection);
    ready(job(&sql))
}

fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => unreachable!("statements on SQLite are done when their call returns"),
    }
}

/// Mail and keys are in there: for the owner only.
fn create_private_folder(folder: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(OpenError::io(folder))
}

/// SQLite gives the log beside the database the same mode.
fn create_private_file(path: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.open(path).map(drop).map_err(OpenError::io(path))
}

fn lock_out_others(path: &Path) -> Result<std::fs::File, OpenError> {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock_path = PathBuf::from(lock_path);
    let file = std::fs::File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock_path)
        .map_err(OpenError::io(&lock_path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::Locked(path.to_owned())),
        Err(std::fs::TryLockError::Error(source)) => Err(OpenError::Io { path: lock_path, source }),
    }
}

/// Keeps some of the disk free: when it gets low, nothing new is accepted, so that outcomes of what was accepted
/// before can still be written.
#[derive(Debug)]
struct DiskReserve {
    folder: PathBuf,
    reserve: u64,
    checked: Mutex<Option<(std::time::Instant, u64)>>,
}

impl DiskReserve {
    fn check(&self) -> Result<(), StoreError> {
        const EVERY: std::time::Duration = std::time::Duration::from_millis(500);
        let mut checked = lock(&self.checked);
        let free = match *checked {
            Some((at, free)) if at.elapsed() < EVERY => free,
            _ => {
                let free = fs4::available_space(&self.folder).unwrap_or(u64::MAX);
                *checked = Some((std::time::Instant::now(), free));
                free
            }
        };
        if free < self.reserve {
            return Err(StoreError::Unavailable(format!("only {free} bytes of disk are free")));
        }
        Ok(())
    }
}
