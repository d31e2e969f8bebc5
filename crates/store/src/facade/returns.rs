//! Mail that came back.

use std::sync::Arc;

use crate::records::{NewReturn, Taken};
use crate::verbs::returns;
use crate::{Engine, Job, JobWithIds, Result, Store, StoreError};

impl Store {
    /// When this returns `Ok`, the mail and what it means for its message are on stable storage, both or neither.
    /// `NotFound` if there is no such message.
    pub async fn take_return(&self, new: NewReturn) -> Result<Taken> {
        let server_id = new.info.server_id;
        // In a task of its own: who hangs up between a large body and its row must leave no orphan.
        let engine = Arc::clone(&self.engine);
        let taking = tokio::spawn(async move {
            let (send_id, id, about, body) = (new.info.id, new.id, new.about, new.body.clone());
            let job: JobWithIds<Taken> =
                Box::new(move |sql, ids| Box::pin(async move { returns::take(sql, &ids, new).await }));
            match &*engine {
                Engine::Sqlite { engine, ids } => {
                    let ids = Arc::clone(ids);
                    let job: Job<Taken> = Box::new(move |sql| job(sql, ids));
                    engine.write_with_body(send_id, &body, job, |taken: &Taken| taken.is_stored).await
                }
                Engine::Postgres(engine) => {
                    let bytes = body.compressed().len();
                    engine.write_with_body(about, &[send_id.0, id.0], bytes, job).await
                }
            }
        });
        let taken =
            taking.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the store is closed".into())))?;
        self.last_suppressed.note([server_id], self.clock.now());
        self.bells.ring([server_id]);
        Ok(taken)
    }
}
