//! Runs the jobs of `Store`'s methods on its engine, with an audit entry if the store is `audited`.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use postroad_model::{IdGenerator, ServerId, Timestamp};

use crate::audit::{self, Audit};
use crate::result_slot::{ResultSlot, with_ids_and_slot, with_slot};
use crate::sql::{Row, Sql, Value};
use crate::{Described, Engine, Job, JobWithIds, Result, Store};

impl Store {
    /// Like `write`, for changes that the delivery engine should see at once.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let done = self.write(job).await?;
        self.note_change();
        Ok(done)
    }

    pub(crate) fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Runs a job in a transaction that may write. Records the change in the audit log if the store is `audited`.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (job, slot) = with_slot(job);
        self.write_audited(job).await?;
        Ok(slot.take())
    }

    async fn write_audited(&self, job: Job<()>) -> Result<()> {
        let Some(audit) = self.audit.clone() else { return self.write_unaudited(job).await };
        let now = self.clock.now();
        let audited: Job<()> = Box::new(move |sql| {
            Box::pin(async move { audit::append::around(sql, &audit, now, job(sql)).await })
        });
        self.write_unaudited(audited).await
    }

    /// Like `write`, for changes that the subject's row does not show: the job also returns a description of its change
    /// for the audit log, or `None` if it changed nothing.
    pub(crate) async fn write_described<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<(T, Option<Described>)>> + Send + 'static,
    ) -> Result<T> {
        let slot = ResultSlot::new();
        let inner = slot.clone();
        let (audit, now) = (self.audit.clone(), self.clock.now());
        let described: Job<()> = Box::new(move |sql| {
            Box::pin(async move {
                let (done, changed) = job(sql).await?;
                inner.put(done);
                if let (Some(audit), Some(changed)) = (audit, changed) {
                    audit::append::describe(sql, &audit, changed, now).await?;
                }
                Ok(())
            })
        });
        self.write_unaudited(described).await?;
        Ok(slot.take())
    }

    /// Extends a job: it also writes an audit entry that describes its change, if it changed anything.
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

    /// Waits for the turn to change a message with an audit entry (`describing`). Keep the turn until the change is
    /// committed.
    pub(crate) async fn wait_to_describe(&self, server_id: ServerId) -> Option<audit::Turn<'_>> {
        if self.audit.is_none() || self.is_sqlite() {
            return None;
        }
        Some(self.audit_turns.wait(server_id).await)
    }

    async fn write_unaudited(&self, job: Job<()>) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.write(job).await,
            Engine::Postgres(engine) => engine.write(job).await,
        }
    }

    /// Like `write`, for operations that create ids.
    pub(crate) async fn write_with_ids<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>, Arc<IdGenerator>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        match &*self.engine {
            Engine::Sqlite { ids, .. } => {
                let ids = Arc::clone(ids);
                self.write(move |sql| job(sql, ids)).await
            }
            Engine::Postgres(engine) => {
                let (job, slot) = with_ids_and_slot(job);
                let job = match self.audit.clone() {
                    Some(audit) => around_with_ids(audit, self.clock.now(), job),
                    None => job,
                };
                engine.write_with_ids(job).await?;
                Ok(slot.take())
            }
        }
    }

    /// Reads all rows of one query.
    pub(crate) async fn fetch_all<T: Send + 'static>(
        &self,
        text: &'static str,
        params: Vec<Value>,
        read: fn(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows = self.read(move |sql| Box::pin(async move { sql.query(text, &params).await }));
        Box::pin(rows).await?.iter().map(read).collect()
    }

    /// Reads the first row of a query, if there is one.
    pub(crate) async fn fetch_opt<T: Send + 'static>(
        &self,
        text: &'static str,
        params: Vec<Value>,
        read: fn(&Row) -> Result<T>,
    ) -> Result<Option<T>> {
        let row = self.read(move |sql| Box::pin(async move { sql.query_opt(text, &params).await }));
        Box::pin(row).await?.as_ref().map(read).transpose()
    }

    /// Runs one statement that writes; returns the number of rows it changed.
    pub(crate) async fn execute(&self, text: &'static str, params: Vec<Value>) -> Result<u64> {
        // Boxed: otherwise it would make the futures of all its callers large.
        Box::pin(self.write(move |sql| Box::pin(async move { sql.execute(text, &params).await }))).await
    }

    /// Runs one statement that must change a row; otherwise `NotFound`.
    pub(crate) async fn execute_one(&self, text: &'static str, params: Vec<Value>) -> Result<()> {
        Box::pin(self.write(move |sql| Box::pin(async move { sql.change(text, &params).await }))).await
    }

    /// Runs a job that only reads.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (job, slot) = with_slot(job);
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.read(job).await?,
            Engine::Postgres(engine) => engine.read(job).await?,
        }
        Ok(slot.take())
    }
}

/// Extends a job: it also records its change in the audit log.
fn around_with_ids(audit: Arc<Audit>, now: Timestamp, job: JobWithIds<()>) -> JobWithIds<()> {
    Box::new(move |sql, ids| {
        Box::pin(async move { audit::append::around(sql, &audit, now, job(sql, ids)).await })
    })
}
