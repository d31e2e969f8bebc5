//! Accepting mail: the send with its messages, their first state, and the hand-over to delivery.

pub(crate) mod account_limits;
pub(crate) mod account_periods;
mod fresh_messages;
pub(crate) mod hand_over;
pub(crate) mod hourly_limit;
pub(crate) mod initial;
pub(crate) mod limit_values;
mod send;

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;

use crate::error::StoreError;
use crate::{Engine, Result, Store};

pub use fresh_messages::{FreshMessages, FreshRecipient, FreshSink};
pub use initial::HELD_IN_DEVELOPMENT;
pub use limit_values::{AccountLimits, LimitOwner, LimitUse};
pub use send::{
    Accepted, InitialState, NewRecipient, NewSend, OneClickUnsubscribe, SendInfo, SendOptions, SendTracking,
};

#[boxed_futures]
impl Store {
    /// Accepts a send. When this returns `Stored`, the send counts as accepted: it is on stable storage with its
    /// messages, queue entries, events and idempotency key. On failure nothing is stored, unless only the confirmation
    /// of the commit was lost.
    pub async fn accept(&self, send: NewSend) -> Result<Accepted> {
        let server_id = send.info.server_id;
        let accepted = match &*self.engine {
            // In its own task, so that a caller that disconnects before the commit leaves no orphaned body file.
            Engine::Sqlite { .. } if send.is_large() => self.accept_in_task(vec![send]).await,
            Engine::Sqlite { engine, ids } => engine.accept(vec![send], Arc::clone(ids)).await,
            Engine::Postgres(engine) => engine.accept(send).await,
        };
        if accepted.is_ok() {
            self.notifier.notify([server_id]);
        }
        accepted
    }

    /// Accepts sends of one server in one transaction: all of them, or none. The idempotency key of the first send
    /// applies to all. Batches are written one after the other, so that another server's send waits for at most one
    /// batch.
    pub async fn accept_batch(&self, sends: Vec<NewSend>) -> Result<Accepted> {
        let Some(server_id) = sends.first().map(|send| send.info.server_id) else {
            return Err(StoreError::Internal("the batch has no sends".into()));
        };
        let accepted = self.accept_in_task(sends).await;
        if accepted.is_ok() {
            self.notifier.notify([server_id]);
        }
        accepted
    }

    /// Accepts sends in a separate task, which continues if the caller disconnects.
    async fn accept_in_task(&self, sends: Vec<NewSend>) -> Result<Accepted> {
        let engine = self.engine.clone();
        let accepting = tokio::spawn(async move {
            match &*engine {
                Engine::Sqlite { engine, ids } => engine.accept(sends, Arc::clone(ids)).await,
                Engine::Postgres(engine) => engine.accept_batch(sends).await,
            }
        });
        accepting.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the store is closed".into())))
    }
}
