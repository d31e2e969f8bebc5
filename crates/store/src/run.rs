//! Runs the operations of `Store`'s methods on its engine, with an audit entry if the store is `audited`.
//!
//! The methods that take an operation only erase the type of its result, so that the code which runs it is compiled
//! once. `Store`'s methods whose operations the engines must run in another way, such as those of the queue, call the
//! engines directly.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use postroad_model::{IdGenerator, ServerId, Timestamp};

use crate::any_result::{AnyResult, erase_type, erase_type_described, erase_type_with_ids, restore_type};
use crate::audit::{self, Audit};
use crate::sql::{Row, Sql, Value};
use crate::{ChangeDescription, Engine, Result, SqlOperation, SqlOperationWithIds, Store};

impl Store {
    /// Runs an operation that only reads.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        operation: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        restore_type(self.read_any(erase_type(Box::new(operation))))
    }

    /// Runs an operation in a transaction that may write. Records the change in the audit log if the store is
    /// `audited`.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        operation: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        restore_type(self.write_audited(erase_type(Box::new(operation))))
    }

    /// Like `write`, for operations that create ids.
    pub(crate) fn write_with_ids<T: Send + 'static>(
        &self,
        operation: impl for<'a> FnOnce(&'a Sql<'a>, Arc<IdGenerator>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        restore_type(self.write_audited_with_ids(erase_type_with_ids(Box::new(operation))))
    }

    /// Like `write`, for changes that the delivery engine should see at once.
    pub(crate) fn change<T: Send + 'static>(
        &self,
        operation: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        restore_type(self.change_any(erase_type(Box::new(operation))))
    }

    /// Like `write`, for changes that the subject's row does not show: the operation also returns a description of its
    /// change for the audit log, or `None` if it changed nothing.
    pub(crate) fn write_described<T: Send + 'static>(
        &self,
        operation: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<(T, Option<ChangeDescription>)>>
        + Send
        + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        restore_type(self.write_any_described(erase_type_described(Box::new(operation))))
    }

    /// Reads all rows of one query.
    pub(crate) fn fetch_all<T: Send + 'static>(
        &self,
        text: &'static str,
        params: Vec<Value>,
        read: fn(&Row) -> Result<T>,
    ) -> BoxFuture<'_, Result<Vec<T>>> {
        let rows = self.fetch_rows(text, params);
        Box::pin(async move { rows.await?.iter().map(read).collect() })
    }

    /// Reads the first row of a query, if there is one.
    pub(crate) fn fetch_opt<T: Send + 'static>(
        &self,
        text: &'static str,
        params: Vec<Value>,
        read: fn(&Row) -> Result<T>,
    ) -> BoxFuture<'_, Result<Option<T>>> {
        let rows = self.fetch_rows(text, params);
        Box::pin(async move { rows.await?.first().map(read).transpose() })
    }

    /// Runs one statement that writes; returns the number of rows it changed.
    pub(crate) fn execute(&self, text: &'static str, params: Vec<Value>) -> BoxFuture<'_, Result<u64>> {
        self.write(move |sql| Box::pin(async move { sql.execute(text, &params).await }))
    }

    /// Runs one statement that must change a row; otherwise `NotFound`.
    pub(crate) fn execute_one(&self, text: &'static str, params: Vec<Value>) -> BoxFuture<'_, Result<()>> {
        self.write(move |sql| Box::pin(async move { sql.execute_one(text, &params).await }))
    }

    /// Notifies the receivers of `Store::changes`.
    pub(crate) fn notify_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Extends an operation: it also writes an audit entry that describes its change, if it changed anything.
    pub(crate) fn with_audit_entry<T: Send + 'static>(
        &self,
        operation: SqlOperationWithIds<T>,
        describe: impl FnOnce(&T) -> Option<ChangeDescription> + Send + 'static,
    ) -> SqlOperationWithIds<T> {
        let Some(audit) = self.audit.clone() else { return operation };
        let now = self.clock.now();
        Box::new(move |sql, ids| {
            Box::pin(async move {
                let result = operation(sql, ids).await?;
                if let Some(description) = describe(&result) {
                    audit::append::record_described(sql, &audit, description, now).await?;
                }
                Ok(result)
            })
        })
    }

    /// On PostgreSQL, waits for the permit that a change of a server's message needs if it writes an audit entry
    /// (`with_audit_entry`). Keep the permit until the change is committed. `None` if no permit is needed.
    pub(crate) async fn acquire_audit_permit(&self, server_id: ServerId) -> Option<audit::AuditPermit<'_>> {
        if self.audit.is_none() || self.is_sqlite() {
            return None;
        }
        Some(self.audit_queues.wait(server_id).await)
    }

    fn fetch_rows(&self, text: &'static str, params: Vec<Value>) -> BoxFuture<'_, Result<Vec<Row>>> {
        self.read(move |sql| Box::pin(async move { sql.query(text, &params).await }))
    }

    fn read_any(&self, operation: SqlOperation<AnyResult>) -> BoxFuture<'_, Result<AnyResult>> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => Box::pin(engine.read(operation)),
            Engine::Postgres(engine) => Box::pin(engine.read(operation)),
        }
    }

    fn change_any(&self, operation: SqlOperation<AnyResult>) -> BoxFuture<'_, Result<AnyResult>> {
        Box::pin(async move {
            let result = self.write_audited(operation).await?;
            self.notify_change();
            Ok(result)
        })
    }

    fn write_any_described(
        &self,
        operation: SqlOperation<(AnyResult, Option<ChangeDescription>)>,
    ) -> BoxFuture<'_, Result<AnyResult>> {
        let (audit, now) = (self.audit.clone(), self.clock.now());
        self.write_unaudited(Box::new(move |sql| {
            Box::pin(async move {
                let (result, description) = operation(sql).await?;
                if let (Some(audit), Some(description)) = (audit, description) {
                    audit::append::record_described(sql, &audit, description, now).await?;
                }
                Ok(result)
            })
        }))
    }

    fn write_audited(&self, operation: SqlOperation<AnyResult>) -> BoxFuture<'_, Result<AnyResult>> {
        let Some(audit) = self.audit.clone() else { return self.write_unaudited(operation) };
        let now = self.clock.now();
        self.write_unaudited(Box::new(move |sql| {
            Box::pin(async move { audit::append::record_change(sql, &audit, now, operation(sql)).await })
        }))
    }

    fn write_audited_with_ids(
        &self,
        operation: SqlOperationWithIds<AnyResult>,
    ) -> BoxFuture<'_, Result<AnyResult>> {
        match &*self.engine {
            Engine::Sqlite { ids, .. } => {
                let ids = Arc::clone(ids);
                self.write_audited(Box::new(move |sql| operation(sql, ids)))
            }
            Engine::Postgres(engine) => {
                let operation = match self.audit.clone() {
                    Some(audit) => record_change_with_ids(audit, self.clock.now(), operation),
                    None => operation,
                };
                Box::pin(engine.write_with_ids(operation))
            }
        }
    }

    fn write_unaudited(&self, operation: SqlOperation<AnyResult>) -> BoxFuture<'_, Result<AnyResult>> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => Box::pin(engine.write(operation)),
            Engine::Postgres(engine) => Box::pin(engine.write(operation)),
        }
    }
}

/// Extends an operation: it also records its change in the audit log.
fn record_change_with_ids(
    audit: Arc<Audit>,
    now: Timestamp,
    operation: SqlOperationWithIds<AnyResult>,
) -> SqlOperationWithIds<AnyResult> {
    Box::new(move |sql, ids| {
        Box::pin(async move { audit::append::record_change(sql, &audit, now, operation(sql, ids)).await })
    })
}
