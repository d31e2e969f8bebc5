//! Begins claimed messages right before they are sent.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{MessageId, ServerId, Timestamp};

use crate::messages::Message;
use crate::suppressions::Suppression;
use crate::{Engine, Result, Store};

/// A claimed message that is about to be sent.
#[derive(Debug, Clone)]
pub struct BeginRequest {
    pub server_id: ServerId,
    pub message_id: MessageId,
    /// Due time under which the message was claimed. If its queue entry now has another due time, the claim has ended,
    /// for example because the message was retried.
    pub due_at: Timestamp,
    /// Whether to read the message; false for a fresh message, which the caller already has.
    pub needs_message: bool,
}

/// Result of `begin` for one message.
#[derive(Debug)]
pub enum BeginResult {
    /// The message may be sent; contains the message if `begin` read it.
    Go(Option<Box<Message>>),
    /// The recipient was suppressed meanwhile: the caller finishes the message as held.
    Suppressed(Box<Message>, Suppression),
    /// This node no longer has the claim (for example because the message was cancelled), or has already begun the
    /// message.
    Gone,
}

#[boxed_futures]
impl Store {
    /// Call this right before claimed messages are sent; returns one answer for each. A message that may be sent is
    /// then begun: it can no longer be cancelled or retried, and is not begun a second time. Reads a message and checks
    /// its recipient for suppression if `needs_message` is set, or if its server suppressed an address after the
    /// message was due.
    pub async fn begin(&self, mut entries: Vec<BeginRequest>) -> Result<Vec<BeginResult>> {
        let now = self.clock.now();
        match &*self.engine {
            Engine::Sqlite { engine, .. } => {
                self.last_suppressed.require_read(&mut entries);
                engine.begin(entries, now).await
            }
            Engine::Postgres(engine) => engine.begin(&entries, now).await,
        }
    }

    /// Reverts `begin`: the message is not being sent after all. It stays claimed, and can be begun again.
    pub async fn unbegin(&self, server_id: ServerId, id: MessageId) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => {
                engine.unbegin((server_id, id));
                Ok(())
            }
            Engine::Postgres(engine) => engine.unbegin((server_id, id)).await,
        }
    }
}
