//! Looks up messages and their deliveries, always by the caller's own server: a foreign id is an unknown one.

use postroad_boxed_futures::boxed_futures;
use postroad_mail::{MessageView, received};
use postroad_model::{Direction, MessageId};
use postroad_store::{Delivery, Message, MessageSummary, StoreError};

use crate::{App, Caller};

/// Requested parts of a message; each step costs more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// Id and token.
    Summary,
    /// Rows with status and details. The stored bytes are read separately, once memory for them is reserved.
    Record,
}

/// Requested parts of a message.
#[derive(Debug)]
pub struct FoundMessage {
    pub summary: MessageSummary,
    pub record: Option<Message>,
}

#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    #[error("no such message")]
    NotFound,
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[boxed_futures]
impl App {
    pub async fn find_message(
        &self,
        caller: &Caller,
        id: MessageId,
        wanted: Wanted,
    ) -> Result<FoundMessage, LookupError> {
        let store = &self.inner.store;
        if wanted == Wanted::Summary {
            let summary =
                store.find_message_summary(caller.server_id, id).await?.ok_or(LookupError::NotFound)?;
            return Ok(FoundMessage { summary, record: None });
        }
        let record = store.find_message(caller.server_id, id).await?.ok_or(LookupError::NotFound)?;
        let summary = MessageSummary { id, token: record.token.clone() };
        Ok(FoundMessage { summary, record: Some(record) })
    }

    /// Reads the stored bytes of a message: `record.send.size` bytes, and for an outgoing message the
    /// `Received` header that each delivery puts before them. The signature and the links of a tracked copy are
    /// not included. `None` if retention has removed the body, and for the service's own mail: links to set a password are in it.
    pub async fn read_message_bytes(
        &self,
        caller: &Caller,
        record: &Message,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let send = &record.send;
        if self.inner.store.find_own_server().await? == Some(caller.server_id) {
            return Ok(None);
        }
        let found = self.inner.store.find_body(caller.server_id, send.id, send.size).await?;
        if send.direction == Direction::Incoming {
            return Ok(found);
        }
        let Some(mut bytes) = found else { return Ok(None) };
        let trace = self.received_by_us(record);
        bytes.reserve_exact(trace.len());
        bytes.splice(..0, trace.into_bytes());
        Ok(Some(bytes))
    }

    /// Number of bytes that `read_message_bytes` returns, whether they still exist or not.
    pub fn message_size(&self, record: &Message) -> u64 {
        match record.send.direction {
            Direction::Incoming => record.send.size,
            Direction::Outgoing => record.send.size + self.received_by_us(record).len() as u64,
        }
    }

    /// `Received` header that each delivery puts before the message.
    fn received_by_us(&self, record: &Message) -> String {
        let send = &record.send;
        // Messages from older versions do not record the accepting host.
        let host = send.options.host.as_ref().unwrap_or(&self.inner.hostname);
        received(host, &record.token, send.options.protocol.as_str(), send.created_at)
    }

    /// Delivery attempts in time order.
    pub async fn list_deliveries(
        &self,
        caller: &Caller,
        id: MessageId,
    ) -> Result<Vec<Delivery>, LookupError> {
        let deliveries = self.inner.store.list_deliveries(caller.server_id, id).await?;
        if deliveries.is_empty() {
            // Tell a message without attempts from an unknown one.
            self.find_message(caller, id, Wanted::Summary).await?;
        }
        Ok(deliveries)
    }
}

/// Parses a stored message: bodies, attachments, headers.
pub fn view_message(bytes: &[u8]) -> MessageView {
    postroad_mail::view(bytes)
}
