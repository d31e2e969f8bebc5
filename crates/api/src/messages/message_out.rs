//! JSON forms of a message and its expansions.

use std::collections::BTreeMap;

use crate::documented::ToSchema;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use postroad_app::MessageView;
use postroad_app::tracking_events::Activity;
use postroad_model::{Status, Timestamp};
use postroad_store::Message;
use serde::{Serialize, Serializer};

use crate::envelope::OrNull;

/// Message: `id`, `token` and the parts requested by `_expansions`.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct MessageOut {
    pub(super) id: i64,
    #[schema(example = "Xy3kQ9aPz0LmN4bT")]
    pub(super) token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<StatusOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<DetailsOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inspection: Option<InspectionOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(super) plain_body: Option<OrNull<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(super) html_body: Option<OrNull<String>>,
    /// Null, like the other content parts, once the body's retention period is over or the message is erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<AttachmentOut>>)]
    pub(super) attachments: Option<OrNull<Vec<AttachmentOut>>>,
    /// Decoded headers by lower-case name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    pub(super) headers: Option<OrNull<Headers>>,
    /// Stored message in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(super) raw_message: Option<OrNull<Base64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) activity_entries: Option<ActivityOut>,
}

/// Delivery status of the message. Times are seconds since 1970.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusOut {
    #[schema(
        example = "Sent",
        pattern = "^(Pending|Scheduled|Held|SoftFail|Sent|HardFail|Bounced|HoldCancelled|Cancelled)$"
    )]
    status: &'static str,
    last_delivery_attempt: Option<f64>,
    held: bool,
    hold_expiry: Option<f64>,
    /// Time of the next attempt, if the message is queued.
    next_attempt: Option<f64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DetailsOut {
    rcpt_to: String,
    mail_from: String,
    subject: String,
    message_id: String,
    timestamp: f64,
    /// `outgoing`, or `incoming` for received bounces and reports.
    direction: &'static str,
    /// Size in bytes, as a string.
    size: String,
    bounce: bool,
    /// The message that this bounce belongs to; 0 for none.
    bounce_for_id: i64,
    tag: Option<String>,
    received_with_ssl: bool,
    /// Whether it was sent in test mode, so that it is never delivered.
    test: bool,
    metadata: BTreeMap<String, String>,
}

/// Outgoing mail is not inspected.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct InspectionOut {
    inspected: bool,
    spam: bool,
    spam_score: f64,
    threat: bool,
    threat_details: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttachmentOut {
    filename: String,
    content_type: String,
    /// Base64.
    #[schema(value_type = String)]
    data: Base64,
    size: usize,
    /// SHA-1, hexadecimal.
    hash: String,
}

/// Opens and clicks.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ActivityOut {
    loads: Vec<LoadOut>,
    clicks: Vec<ClickOut>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoadOut {
    ip_address: String,
    user_agent: String,
    #[schema(format = "date-time")]
    timestamp: String,
    /// Opened by a scanner or prefetcher, not by a reader.
    bot: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClickOut {
    url: String,
    ip_address: String,
    user_agent: String,
    #[schema(format = "date-time")]
    timestamp: String,
    /// Clicked by a scanner or prefetcher, not by a reader.
    bot: bool,
}

/// Bytes that are serialised as base64 while they are written.
#[derive(Debug)]
pub(crate) struct Base64(pub(super) Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

/// Header names with their values; serialised as an object in this order.
#[derive(Debug)]
pub(crate) struct Headers(pub(super) Vec<(String, Vec<String>)>);

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, values)| (name, values)))
    }
}

impl MessageOut {
    /// A message that a call changed, with its status and details.
    pub(crate) fn with_status(message: &Message, size: u64) -> Self {
        Self {
            id: message.id.0,
            token: message.token.0.clone(),
            status: Some(StatusOut::from(message)),
            details: Some(DetailsOut::new(message, size)),
            ..Self::default()
        }
    }
}

impl From<&Message> for StatusOut {
    fn from(message: &Message) -> Self {
        Self {
            status: message.status.as_str(),
            last_delivery_attempt: message.last_delivery_at.map(Timestamp::as_epoch_seconds),
            held: message.status == Status::Held,
            hold_expiry: message.hold_expiry.map(Timestamp::as_epoch_seconds),
            next_attempt: message.next_attempt_at.map(Timestamp::as_epoch_seconds),
        }
    }
}

impl DetailsOut {
    /// `size` is the length of `raw_message` before base64.
    pub(super) fn new(message: &Message, size: u64) -> Self {
        let send = &message.send;
        Self {
            rcpt_to: message.rcpt_to.clone(),
            mail_from: send.mail_from.clone(),
            subject: send.subject.clone(),
            message_id: send.message_id.clone(),
            timestamp: send.created_at.as_epoch_seconds(),
            direction: send.direction.as_str(),
            size: size.to_string(),
            bounce: send.bounce,
            bounce_for_id: message.bounce_for_id,
            tag: send.tag.clone(),
            received_with_ssl: send.received_with_ssl,
            test: send.test,
            metadata: send.metadata.clone(),
        }
    }
}

impl ActivityOut {
    pub(super) fn of(activity: Vec<Activity>) -> Self {
        let mut out = Self::default();
        for entry in activity {
            let Activity { url, ip_address, user_agent, at, bot } = entry;
            let timestamp = at.to_rfc3339_millis();
            match url {
                Some(url) => out.clicks.push(ClickOut { url, ip_address, user_agent, timestamp, bot }),
                None => out.loads.push(LoadOut { ip_address, user_agent, timestamp, bot }),
            }
        }
        out
    }
}

impl AttachmentOut {
    pub(super) fn list(view: &mut MessageView) -> Vec<Self> {
        let attachments = std::mem::take(&mut view.attachments).into_iter();
        let attachment = |attachment: postroad_app::AttachmentView| Self {
            filename: attachment.filename,
            content_type: attachment.content_type,
            size: attachment.content.len(),
            hash: sha1_hex(&attachment.content),
            data: Base64(attachment.content),
        };
        attachments.map(attachment).collect()
    }
}

fn sha1_hex(content: &[u8]) -> String {
    use std::fmt::Write;
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, content);
    digest.as_ref().iter().fold(String::with_capacity(40), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a String cannot fail");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_base64_are_as_other_tools_write_them() {
        assert_eq!(sha1_hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();
        let written: String =
            serde_json::from_value(serde_json::to_value(Base64(bytes.clone())).unwrap()).unwrap();
        assert_eq!(base64::Engine::decode(&STANDARD, written).unwrap(), bytes);
    }
}
