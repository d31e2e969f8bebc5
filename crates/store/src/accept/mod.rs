//! Accepting mail: the send with its messages, their first state, and the hand-over to delivery.

mod fresh;
pub(crate) mod hand_over;
pub(crate) mod hourly_limit;
pub(crate) mod initial;
mod send;

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;

use crate::error::StoreError;
use crate::{Engine, Result, Store};

pub use fresh::{Fresh, FreshRecipient, FreshSink};
pub use send::{
    Accepted, InitialState, NewRecipient, NewSend, OwnUnsubscribe, SendInfo, SendOptions, SendTracking,
};

#[boxed_futures]
impl Store {
    /// The instant a message counts as accepted: when this returns `Stored`, the send, its messages, their queue
    /// entries, events and idempotency key are on stable storage, all of them or none.
    pub async fn accept(&self, send: NewSend) -> Result<Accepted> {
        let server_id = send.info.server_id;
        let accepted = match &*self.engine {
            // In a task of its own, so that a caller who hangs up between the two writes leaves no orphan.
            Engine::Sqlite { ids, .. } if send.is_large() => {
                let (engine, ids) = (Arc::clone(&self.engine), Arc::clone(ids));
                let accepting = tokio::spawn(async move {
                    let Engine::Sqlite { engine, .. } = &*engine else { unreachable!("it was SQLite above") };
                    engine.accept(send, ids).await
                });
                accepting.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the store is closed".into())))
            }
            Engine::Sqlite { engine, ids } => engine.accept(send, Arc::clone(ids)).await,
            Engine::Postgres(engine) => engine.accept(send).await,
        };
        if accepted.is_ok() {
            self.notifier.notify([server_id]);
        }
        accepted
    }
}
