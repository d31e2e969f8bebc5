//! Begin claimed messages right before they go on the wire.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{MessageId, ServerId, Timestamp};

use crate::messages::Message;
use crate::suppressions::Suppression;
use crate::{Engine, Result, Store};

/// A claimed message that is about to go on the wire.
#[derive(Debug, Clone)]
pub struct Begin {
    pub server_id: ServerId,
    pub message_id: MessageId,
    /// As it was claimed: another one means that it was retried meanwhile.
    pub due_at: Timestamp,
    /// False for a fresh message, of which the caller has everything.
    pub needs_message: bool,
}

/// Answer of `begin` for one message.
#[derive(Debug)]
pub enum Begun {
    /// With the message, if it was needed.
    Go(Option<Box<Message>>),
    /// The recipient was suppressed since: to be finished as held.
    Suppressed(Box<Message>, Suppression),
    /// The claim is no longer ours: cancelled, retried, reaped, or begun already.
    Gone,
}

#[boxed_futures]
impl Store {
    /// To be asked right before claimed messages go on the wire; one answer for each. What it lets go is begun: it
    /// cannot be cancelled or retried any more, and is not begun a second time. A message is read, and its recipient looked
    /// up among the suppressed, if the entry says so or an address of its server was suppressed since it was due.
    pub async fn begin(&self, mut entries: Vec<Begin>) -> Result<Vec<Begun>> {
        let now = self.clock.now();
        match &*self.engine {
            Engine::Sqlite { engine, .. } => {
                self.last_suppressed.have_read(&mut entries);
                engine.begin(entries, now).await
            }
            Engine::Postgres(engine) => engine.begin(&entries, now).await,
        }
    }

    /// Takes a `begin` back: the message is not on the wire after all. It stays claimed, and can be begun again.
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
