//! Copies the write-ahead log into the database file, and truncates the log.

use std::thread;
use std::time::Duration;

use rusqlite::Connection;

use crate::error::StoreError;

/// Number of times that a checkpoint of a log in use is tried, with `TRY_PAUSE` in between.
const TRIES_MAX: usize = 60;
const TRY_PAUSE: Duration = Duration::from_millis(250);
/// How many milliseconds truncating the log waits for readers; nobody can write meanwhile.
const READER_WAIT_MS_MAX: i32 = 50;

/// Result of a checkpoint.
struct Checkpoint {
    is_busy: bool,
    /// Frames in the log.
    in_log: i64,
    /// Frames of the log that are copied into the file.
    in_file: i64,
}

/// Copies the current log into the database file, concurrently with readers and writers.
pub(super) fn write_back(connection: &Connection) -> Result<(), StoreError> {
    let mut frames_wanted = None;
    for _ in 0..TRIES_MAX {
        let log = checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
        // Busy: another connection is running a checkpoint.
        if !log.is_busy {
            let frames_wanted = *frames_wanted.get_or_insert(log.in_log);
            // If the log is shorter now, it was restarted, which happens only after all of it was copied into the file.
            if log.in_file >= frames_wanted || log.in_log < frames_wanted {
                return Ok(());
            }
        }
        thread::sleep(TRY_PAUSE);
    }
    Err(in_use_error())
}

/// Truncates the log. Writers wait meanwhile: a few milliseconds, or until readers finish, at most
/// `READER_WAIT_MS_MAX`.
pub(super) fn truncate(connection: &mut Connection) -> Result<(), StoreError> {
    connection.busy_handler(Some(wait_shortly))?;
    for _ in 0..TRIES_MAX {
        // Copies most of the log while others write.
        checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
        if !checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)")?.is_busy {
            return Ok(());
        }
        thread::sleep(TRY_PAUSE);
    }
    Err(in_use_error())
}

fn wait_shortly(waits: i32) -> bool {
    thread::sleep(Duration::from_millis(1));
    waits < READER_WAIT_MS_MAX
}

fn checkpoint(connection: &Connection, text: &str) -> Result<Checkpoint, StoreError> {
    let read = |row: &rusqlite::Row<'_>| {
        let is_busy = row.get::<_, i64>(0)? != 0;
        Ok(Checkpoint { is_busy, in_log: row.get(1)?, in_file: row.get(2)? })
    };
    Ok(connection.query_row(text, [], read)?)
}

fn in_use_error() -> StoreError {
    StoreError::Unavailable("the log of the database is in use all the time".into())
}
