//! Runs the jobs of `Store`'s methods on its engine, with an audit entry if the store is `audited`.
//!
//! The methods that take a job only erase the type of its result, so that the code which runs it is compiled once.
//! `Store`'s methods whose jobs the engines must run in another way, such as those of the queue, call the engines
//! directly.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use postroad_model::{IdGenerator, ServerId, Timestamp};

use crate::any_result::{AnyResult, erase_type, erase_type_described, erase_type_with_ids, restore_type};
use crate::audit::{self, Audit};
use crate::sql::{Row, Sql, Value};
use crate::{Described, Engine, Job, JobWithIds, Result, Store};

impl Store {
    /// Runs a job that only reads.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        restore_type(self.read_any(erase_type(Box::new(job))))
    }

    /// Runs a job in a transaction that may write. Records the change in the audit log if the store is `audited`.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        restore_type(self.write_audited(erase_type(Box::new(job))))
    }

    /// Like `write`, for operations that create ids.
    pub(crate) fn write_with_ids<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>, Arc<IdGenerator>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        restore_type(self.write_audited_with_ids(erase_type_with_ids(Box::new(job))))
    }

    /// Like `write`, for changes that the delivery engine should see at once.
    pub(crate) fn change<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        restore_type(self.change_any(erase_type(Box::new(job))))
    }

    /// Like `write`, for changes that the subject's row does not show: the job also returns a description of its change
    /// for the audit log, or `None` if it changed nothing.
    pub(crate) fn write_described<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<(T, Option<Described>)>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        restore_type(self.write_any_described(erase_type_described(Box::new(job))))
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
        self.write(move |sql| Box::pin(async move { sql.change(text, &params).await }))
    }

    /// Notifies the receivers of `Store::changes`.
    pub(crate) fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Extends a job: the job also writes an audit entry that describes its change, if it changed anything.
    pub(crate) fn describing<T: Send + 'static>(
        &self,
        job: JobWithIds<T>,
        describe: impl FnOnce(&T) -> Option<Described> + Send + 'static,
    ) -> JobWithIds<T> {
        let Some(audit) = self.audit.clone() else { return job };
        let now = self.clock.now();
        Box::new(move |sql, ids| {
            Box::pin(async move {
                let done = job(sql, ids).await?;
                if let Some(changed) = describe(&done) {
                    audit::append::describe(sql, &audit, changed, now).await?;
                }
                Ok(done)
            })
        })
    }

    /// On PostgreSQL, waits for the turn to change a message with an audit entry (`describing`). Keep the turn until
    /// the change is committed. `None` if no turn is needed.
    pub(crate) async fn wait_to_describe(&self, server_id: ServerId) -> Option<audit::Turn<'_>> {
        if self.audit.is_none() || self.is_sqlite() {
            return None;
        }
        Some(self.audit_turns.wait(server_id).await)
    }

    fn fetch_rows(&self, text: &'static str, params: Vec<Value>) -> BoxFuture<'_, Result<Vec<Row>>> {
        self.read(move |sql| Box::pin(async move { sql.query(text, &params).await }))
    }

    fn read_any(&self, job: Job<AnyResult>) -> BoxFuture<'_, Result<AnyResult>> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => Box::pin(engine.read(job)),
            Engine::Postgres(engine) => Box::pin(engine.read(job)),
        }
    }

    fn change_any(&self, job: Job<AnyResult>) -> BoxFuture<'_, Result<AnyResult>> {
        Box::pin(async move {
            let done = self.write_audited(job).await?;
            self.note_change();
            Ok(done)
        })
    }

    fn write_any_described(
        &self,
        job: Job<(AnyResult, Option<Described>)>,
    ) -> BoxFuture<'_, Result<AnyResult>> {
        let (audit, now) = (self.audit.clone(), self.clock.now());
        self.write_unaudited(Box::new(move |sql| {
            Box::pin(async move {
                let (done, changed) = job(sql).await?;
                if let (Some(audit), Some(changed)) = (audit, changed) {
                    audit::append::describe(sql, &audit, changed, now).await?;
                }
                Ok(done)
            })
        }))
    }

    fn write_audited(&self, job: Job<AnyResult>) -> BoxFuture<'_, Result<AnyResult>> {
        let Some(audit) = self.audit.clone() else { return self.write_unaudited(job) };
        let now = self.clock.now();
        self.write_unaudited(Box::new(move |sql| {
            Box::pin(async move { audit::append::around(sql, &audit, now, job(sql)).await })
        }))
    }

    fn write_audited_with_ids(&self, job: JobWithIds<AnyResult>) -> BoxFuture<'_, Result<AnyResult>> {
        match &*self.engine {
            Engine::Sqlite { ids, .. } => {
                let ids = Arc::clone(ids);
                self.write_audited(Box::new(move |sql| job(sql, ids)))
            }
            Engine::Postgres(engine) => {
                let job = match self.audit.clone() {
                    Some(audit) => around_with_ids(audit, self.clock.now(), job),
                    None => job,
                };
                Box::pin(engine.write_with_ids(job))
            }
        }
    }

    fn write_unaudited(&self, job: Job<AnyResult>) -> BoxFuture<'_, Result<AnyResult>> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => Box::pin(engine.write(job)),
            Engine::Postgres(engine) => Box::pin(engine.write(job)),
        }
    }
}

/// Extends a job: the job also records its change in the audit log.
fn around_with_ids(audit: Arc<Audit>, now: Timestamp, job: JobWithIds<AnyResult>) -> JobWithIds<AnyResult> {
    Box::new(move |sql, ids| {
        Box::pin(async move { audit::append::around(sql, &audit, now, job(sql, ids)).await })
    })
}
