//! Operations that leave their result in a slot. The engines run them all as one type, so that their code is compiled
//! once and not for each type of result.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use postroad_model::IdGenerator;

use crate::sql::Sql;
use crate::{Job, JobWithIds, Result};

/// Where an operation leaves its result.
pub(crate) struct ResultSlot<T> {
    result: Arc<Mutex<Option<T>>>,
}

impl<T> Clone for ResultSlot<T> {
    fn clone(&self) -> Self {
        Self { result: Arc::clone(&self.result) }
    }
}

impl<T: Send + 'static> ResultSlot<T> {
    pub(crate) fn new() -> Self {
        Self { result: Arc::default() }
    }

    pub(crate) fn put(&self, result: T) {
        *self.result.lock() = Some(result);
    }

    /// Call it after the operation has succeeded.
    pub(crate) fn take(&self) -> T {
        self.result.lock().take().expect("an operation that succeeded has left its result")
    }
}

pub(crate) fn with_slot<T: Send + 'static>(
    job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
) -> (Job<()>, ResultSlot<T>) {
    let slot = ResultSlot::new();
    let inner = slot.clone();
    let job: Job<()> = Box::new(move |sql| {
        let running = job(sql);
        Box::pin(async move {
            inner.put(running.await?);
            Ok(())
        })
    });
    (job, slot)
}

/// Like `with_slot`, for operations that create ids.
pub(crate) fn with_ids_and_slot<T: Send + 'static>(
    job: impl for<'a> FnOnce(&'a Sql<'a>, Arc<IdGenerator>) -> BoxFuture<'a, Result<T>> + Send + 'static,
) -> (JobWithIds<()>, ResultSlot<T>) {
    let slot = ResultSlot::new();
    let inner = slot.clone();
    let job: JobWithIds<()> = Box::new(move |sql, ids| {
        let running = job(sql, ids);
        Box::pin(async move {
            inner.put(running.await?);
            Ok(())
        })
    });
    (job, slot)
}
