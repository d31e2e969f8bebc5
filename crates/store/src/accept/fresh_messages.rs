//! Freshly accepted messages, passed from the commit directly to delivery.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use postroad_model::{MessageId, MessageToken, ServerId};

use super::send::{NewSend, SendInfo};
use crate::queue::ClaimedEntry;

/// Receives messages right after the commit that accepted them, on the committing thread: it must not block.
pub trait FreshSink: Send + Sync + fmt::Debug {
    fn take(&self, fresh: FreshMessages);

    /// Whether the sink takes more of this server's messages now. If not, new messages are accepted without a claim,
    /// and delivery claims them later. Must not block.
    fn has_room(&self, _server: ServerId) -> bool {
        true
    }
}

/// Messages of one send, claimed by this node.
#[derive(Debug, Clone)]
pub struct FreshMessages {
    pub send: Arc<SendInfo>,
    /// The message before compression.
    pub body: Bytes,
    pub recipients: Vec<FreshRecipient>,
}

#[derive(Debug, Clone)]
pub struct FreshRecipient {
    pub message_id: MessageId,
    pub token: MessageToken,
    pub rcpt_to: String,
    pub entry: ClaimedEntry,
}

impl FreshMessages {
    /// The recipients of `send` whose messages are in `claimed`; both lists have the same order.
    pub(crate) fn of(send: NewSend, claimed: &[MessageId]) -> Self {
        let NewSend { info, body, recipients, .. } = send;
        let mut claimed = claimed.iter().peekable();
        let recipients = recipients
            .into_iter()
            .filter(|recipient| claimed.next_if(|id| **id == recipient.id).is_some())
            .map(|recipient| FreshRecipient {
                message_id: recipient.id,
                token: recipient.token,
                rcpt_to: recipient.rcpt_to,
                entry: ClaimedEntry {
                    server_id: info.server_id,
                    message_id: recipient.id,
                    domain: recipient.domain,
                    due_at: info.created_at,
                    expires_at: info.options.expires_at,
                    attempts: 0,
                    pool_id: info.options.pool_id,
                    source_id: None,
                },
            })
            .collect();
        Self { send: Arc::new(info), body: body.into_original(), recipients }
    }
}
