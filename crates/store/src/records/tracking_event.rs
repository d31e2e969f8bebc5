//! What tracking finds out.

use postroad_model::{MessageId, ServerId, Timestamp};

/// Somebody fetched a pixel, followed a link or unsubscribed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTrackingEvent {
    pub server_id: ServerId,
    pub message_id: MessageId,
    pub kind: TrackingEventKind,
    pub at: Timestamp,
    pub ip_address: String,
    pub user_agent: String,
    /// By what was known without the message.
    pub is_bot: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrackingEventKind {
    Open,
    Click {
        url: String,
        /// Names the link within its message.
        link: String,
    },
    Unsubscribe {
        /// Who gets no more mail.
        address: String,
    },
}
