//! Operations of the writer's group: the work of one caller, and the answer it waits for.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::run_now;
use crate::SqlOperation;
use crate::error::StoreError;

/// Work for the writer.
pub(super) trait Work: Send + 'static {
    type Output: Send + 'static;

    /// Whether `run` may be called again after a rollback. Such work shares a savepoint with its neighbours: under a
    /// savepoint of its own, each would cost a copy of every page that it changes.
    const IS_REPEATABLE: bool;

    /// Does the work inside the group's transaction.
    fn run(&mut self, connection: &Mutex<Connection>) -> Result<Self::Output, StoreError>;

    /// Called right after the commit or rollback, even if the caller disconnected.
    fn after_group(&mut self, _result: &Result<Self::Output, StoreError>) {}
}

/// A SQL operation as work of the writer; it can run only once.
pub(super) struct SqlWork<T>(Option<SqlOperation<T>>);

impl<T> SqlWork<T> {
    pub(super) fn new(operation: SqlOperation<T>) -> Self {
        Self(Some(operation))
    }
}

impl<T: Send + 'static> Work for SqlWork<T> {
    type Output = T;
    const IS_REPEATABLE: bool = false;

    fn run(&mut self, connection: &Mutex<Connection>) -> Result<T, StoreError> {
        let ran_twice = || StoreError::Internal("a store operation was run twice".into());
        run_now(self.0.take().ok_or_else(ran_twice)?, connection)
    }
}

/// A caller's work, with its result type erased.
pub(super) trait Operation: Send {
    fn is_repeatable(&self) -> bool;

    /// Runs inside the group's transaction; keeps the result for the answer.
    fn run(&mut self, connection: &Mutex<Connection>) -> Result<(), StoreError>;

    /// Sends the result to the caller. Called after the commit was flushed, or after the group failed.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

/// Work and the caller that waits for its result.
pub(super) struct PendingOp<W: Work> {
    work: W,
    result: Option<Result<W::Output, StoreError>>,
    caller: oneshot::Sender<Result<W::Output, StoreError>>,
}

impl<W: Work> PendingOp<W> {
    pub(super) fn new(work: W, caller: oneshot::Sender<Result<W::Output, StoreError>>) -> Self {
        Self { work, result: None, caller }
    }
}

impl<W: Work> Operation for PendingOp<W> {
    fn is_repeatable(&self) -> bool {
        W::IS_REPEATABLE
    }

    fn run(&mut self, connection: &Mutex<Connection>) -> Result<(), StoreError> {
        // A bug in one operation must not end the writer thread, on which all other operations depend.
        let result = catch_unwind(AssertUnwindSafe(|| self.work.run(connection)))
            .unwrap_or_else(|_| Err(StoreError::Internal("a store operation panicked".into())));
        let outcome = result.as_ref().map(drop).map_err(Clone::clone);
        self.result = Some(result);
        outcome
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { mut work, result, caller } = *self;
        let Some(result) = result else { return };
        let result = committed.and(result);
        work.after_group(&result);
        // The caller may have disconnected; its work is done anyway.
        let _ = caller.send(result);
    }
}
