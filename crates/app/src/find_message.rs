//! Looks up messages and their deliveries, always within the caller's own server: a message of another server is
//! reported as unknown.

use postroad_boxed_futures::boxed_futures;
use postroad_mail::{MessageView, received_field};
use postroad_model::{Direction, MessageId};
use postroad_store::{Delivery, Message, MessageSummary, StoreError};

use crate::{App, Caller};

/// Requested parts of a message; `Record` costs more to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageDetail {
    /// Only id and token.
    Summary,
    /// The message with its status and details, but not its bytes. The bytes are read later, after memory for them was
    /// reserved.
    Record,
}

/// A message, with the parts that were requested.
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
        detail: MessageDetail,
    ) -> Result<FoundMessage, LookupError> {
        let store = &self.inner.store;
        if detail == MessageDetail::Summary {
            let summary =
                store.find_message_summary(caller.server_id, id).await?.ok_or(LookupError::NotFound)?;
            return Ok(FoundMessage { summary, record: None });
        }
        let record = store.find_message(caller.server_id, id).await?.ok_or(LookupError::NotFound)?;
        let summary = MessageSummary { id, token: record.token.clone() };
        Ok(FoundMessage { summary, record: Some(record) })
    }

    /// Reads the stored bytes of a message: `record.send.size` bytes, preceded, for an outgoing message, by the
    /// `Received` header that each delivery adds. The DKIM signature, and the changed links of a tracked copy, are not
    /// included. `None` if retention or an erasure has removed the body. Also `None` for the service's own mail, which
    /// can contain links to set a password.
    pub async fn read_message_bytes(
        &self,
        caller: &Caller,
        record: &Message,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let send = &record.send;
        if self.is_service_server(caller.server_id).await? {
            return Ok(None);
        }
        let found = self.inner.store.find_body(caller.server_id, send.id, send.size).await?;
        if send.direction == Direction::Incoming {
            return Ok(found);
        }
        let Some(mut bytes) = found else { return Ok(None) };
        let header = self.received_header(record);
        bytes.reserve_exact(header.len());
        bytes.splice(..0, header.into_bytes());
        Ok(Some(bytes))
    }

    /// Number of bytes that `read_message_bytes` returns, or returned before the body was removed.
    pub fn message_size(&self, record: &Message) -> u64 {
        match record.send.direction {
            Direction::Incoming => record.send.size,
            Direction::Outgoing => record.send.size + self.received_header(record).len() as u64,
        }
    }

    /// `Received` header that each delivery adds before the message.
    fn received_header(&self, record: &Message) -> String {
        let send = &record.send;
        // Messages from older versions do not record the accepting host.
        let host = send.options.host.as_ref().unwrap_or(&self.inner.hostname);
        received_field(host, &record.token, send.options.protocol.as_str(), send.created_at)
    }

    /// Delivery records in time order.
    pub async fn list_deliveries(
        &self,
        caller: &Caller,
        id: MessageId,
    ) -> Result<Vec<Delivery>, LookupError> {
        let deliveries = self.inner.store.list_deliveries(caller.server_id, id).await?;
        if deliveries.is_empty() {
            // Distinguishes a message without delivery records from an unknown one.
            self.find_message(caller, id, MessageDetail::Summary).await?;
        }
        Ok(deliveries)
    }
}

/// Parses a stored message: bodies, attachments, headers.
pub fn view_message(bytes: &[u8]) -> MessageView {
    postroad_mail::view(bytes)
}
