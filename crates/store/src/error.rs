//! Errors, named by what the caller can do about them.

use std::path::PathBuf;

use postroad_model::LimitedObject;

/// Why an operation failed. Nothing was written, unless the variant or the function says otherwise.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// For example a full disk, a dead database or a locked row: the call may succeed later. If only the confirmation
    /// of the commit was lost, the change was written.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A name or key is already taken.
    #[error("it exists already")]
    Conflict,
    /// The row to change, or its parent, does not exist.
    #[error("it does not exist")]
    NotFound,
    /// An object that the call refers to, namely the layout of a template, does not exist. Violations of foreign keys
    /// are `NotFound`.
    #[error("it refers to something that does not exist")]
    MissingReference,
    /// Other rows still need the row.
    #[error("it is in use")]
    InUse,
    /// The owner already has the maximum number of objects of this kind.
    #[error("the maximum number is reached")]
    LimitReached,
    /// The account has reached its ceiling.
    #[error("the account may have at most {ceiling} {}", object.as_str())]
    CeilingReached { object: LimitedObject, ceiling: u32 },
    /// Another request is using the same idempotency key: the call may succeed later.
    #[error("the idempotency key is in use")]
    KeyInUse,
    /// Invalid data or an invalid call: a bug in Postroad.
    #[error("internal store error: {0}")]
    Internal(String),
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "`database = \"{0}\"` is not understood: use `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`"
    )]
    BadUrl(String),
    #[error("{} is in use by another postroad process (its lock is held): stop that one, or use another data directory", .0.display())]
    Locked(PathBuf),
    #[error(
        "the database has schema version {found}, newer than the {known} this postroad knows: start the newer postroad, or restore a backup made before the upgrade"
    )]
    NewerSchema { found: i64, known: i64 },
    #[error(
        "the database has the encoding {0}, which cannot store every character: create it with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`"
    )]
    Encoding(String),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("all node numbers are taken: at most 32 postroad nodes can share a database")]
    NoFreeNode,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OpenError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// Text of `Unavailable` after `lock_timeout` ended a wait.
const ROWS_LOCKED: &str = "rows are locked by another transaction";

impl StoreError {
    /// Whether another transaction held a row for too long. Such an error affects only operations on that row; it is
    /// not an outage.
    pub fn is_lock_timeout(&self) -> bool {
        matches!(self, Self::Unavailable(reason) if reason == ROWS_LOCKED)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        use rusqlite::ffi::{
            SQLITE_CONSTRAINT_FOREIGNKEY, SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE,
        };
        let rusqlite::Error::SqliteFailure(failure, _) = &error else {
            return Self::Internal(error.to_string());
        };
        match failure.code {
            ErrorCode::ConstraintViolation => match failure.extended_code {
                SQLITE_CONSTRAINT_UNIQUE | SQLITE_CONSTRAINT_PRIMARYKEY => Self::Conflict,
                SQLITE_CONSTRAINT_FOREIGNKEY => Self::NotFound,
                _ => Self::Internal(error.to_string()),
            },
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationInterrupted => Self::Unavailable(error.to_string()),
            _ => Self::Internal(error.to_string()),
        }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        use tokio_postgres::error::SqlState;
        let Some(db) = error.as_db_error() else {
            // Closed sockets, timeouts and the like: every error that the database did not report itself.
            return Self::Unavailable(with_causes(&error));
        };
        let code = db.code();
        if *code == SqlState::UNIQUE_VIOLATION {
            return Self::Conflict;
        }
        if *code == SqlState::FOREIGN_KEY_VIOLATION {
            return Self::NotFound;
        }
        if *code == SqlState::LOCK_NOT_AVAILABLE {
            return Self::Unavailable(ROWS_LOCKED.into());
        }
        // 08 connection, 25006 read-only standby, 40 rollback, 53 resources (disk full), 57 shutdown, 58 I/O.
        let is_temporary = ["08", "40", "53", "57", "58"].iter().any(|class| code.code().starts_with(class));
        if is_temporary || code.code() == "25006" {
            return Self::Unavailable(format!("{}: {}", code.code(), db.message()));
        }
        Self::Internal(format!("{}: {}", code.code(), db.message()))
    }
}

impl From<deadpool_postgres::PoolError> for StoreError {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        // All errors of the pool are temporary: a later call may succeed without a restart.
        match error {
            deadpool_postgres::PoolError::Backend(error) => Self::Unavailable(with_causes(&error)),
            other => Self::Unavailable(with_causes(&other)),
        }
    }
}

/// Appends the causes to the text of an error: the driver's own texts ("error connecting to server") omit them.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
