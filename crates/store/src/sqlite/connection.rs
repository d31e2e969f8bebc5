//! Opens connections to the SQLite database, and runs migrations.

use std::path::Path;
use std::time::Duration;

use postroad_model::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::{OpenError, StoreError};
use crate::migrations;

/// The writer's connection: WAL and `synchronous=FULL`, so that a committed transaction survives power loss.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "page_size", 8_192)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    // 32 MB of log between checkpoints, each of which costs two flushes.
    connection.pragma_update(None, "wal_autocheckpoint", 4_096)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    connection.set_prepared_statement_cache_capacity(128);
    enable_stable_plans(&connection)?;
    Ok(connection)
}

pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.set_prepared_statement_cache_capacity(64);
    enable_stable_plans(&connection)?;
    Ok(connection)
}

/// Opens the file to read pages instead of rows, beside the writer. Nothing is written, except that the log is copied
/// into the file, which a read-only connection cannot do.
pub(super) fn open_reader_of_pages(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    // The mode is already set; this opens the log.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// Makes plans independent of parameter values. Otherwise, where a partial index might be used, SQLite inspects the
/// values and prepares the statement again for every new one.
fn enable_stable_plans(connection: &Connection) -> Result<(), StoreError> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Runs pending migrations. The schema version is SQLite's own `user_version`.
pub(super) fn migrate(connection: &mut Connection, now: Timestamp) -> Result<(), OpenError> {
    let found: i64 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(StoreError::from)?;
    for migration in migrations::pending(found)? {
        let transaction = connection.transaction().map_err(StoreError::from)?;
        transaction
            .execute_batch(&migrations::fill_in_now(migration.sqlite, now))
            .map_err(StoreError::from)?;
        transaction.pragma_update(None, "user_version", migration.version).map_err(StoreError::from)?;
        transaction.commit().map_err(StoreError::from)?;
        tracing::info!(version = migration.version, "schema migrated");
    }
    Ok(())
}
