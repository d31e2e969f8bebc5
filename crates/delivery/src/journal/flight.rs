//! Journal entry of one flight: one attempt to send one message.

use postroad_model::{MessageId, ServerId, SourceId, Timestamp};
use serde::{Deserialize, Serialize};

/// Identifies a flight. Includes the attempt number, so that an old mark never counts for a later attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlightKey {
    pub server_id: ServerId,
    pub message_id: MessageId,
    pub attempt: u32,
}

/// The final reply, with everything that a delivery record needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalReply {
    /// Whether the receiver accepted the message, and so took responsibility for it.
    pub accepted: bool,
    pub at: Timestamp,
    pub code: u16,
    /// The remote server's reply without the recipient's address, because an erased address must not stay in a file;
    /// cut after 512 bytes.
    pub text: String,
    pub mx: String,
    pub remote_ip: String,
    pub source_ip: String,
    /// Version and cipher.
    pub tls: Option<String>,
    /// Policy that required TLS, such as DANE or MTA-STS.
    #[serde(default)]
    pub tls_policy: Option<String>,
    /// Why the message was sent in plain text although the host offered TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_tls: Option<String>,
    /// DNS names of the DKIM keys that signed the message.
    #[serde(default)]
    pub dkim: Option<String>,
    pub duration_us: Option<i64>,
    /// Phase of the session by name: with pipelining the reply may answer an earlier command. Empty in marks of older
    /// versions, which means the final reply.
    #[serde(default)]
    pub phase: String,
    /// Source address, if it belongs to a pool.
    #[serde(default)]
    pub source_id: Option<SourceId>,
    /// Name of that pool.
    #[serde(default)]
    pub ip_pool: Option<String>,
    /// Receiver group for which the warm-up of that address counts the message.
    #[serde(default)]
    pub provider: Option<String>,
}

impl FinalReply {
    pub const TEXT_BYTES_MAX: usize = 512;
    /// Limit in bytes of the short texts: the longest domain of RFC 5321 4.5.3.1.2.
    const NAME_BYTES_MAX: usize = 255;
    /// Placeholder for the recipient's address.
    const RECIPIENT: &str = "{recipient}";

    /// `text` with every occurrence of the address replaced, in any letter case.
    pub fn without_recipient(text: &str, rcpt_to: &str) -> String {
        let (lower, rcpt_to) = (text.to_ascii_lowercase(), rcpt_to.to_ascii_lowercase());
        if rcpt_to.is_empty() {
            return text.to_owned();
        }
        let (mut replaced, mut end) = (String::with_capacity(text.len()), 0);
        for (at, found) in lower.match_indices(&rcpt_to) {
            replaced.push_str(&text[end..at]);
            replaced.push_str(Self::RECIPIENT);
            end = at + found.len();
        }
        replaced + &text[end..]
    }

    /// `text` with the recipient's address put back; unchanged if the address is not known any more.
    pub fn with_recipient(&self, rcpt_to: Option<&str>) -> String {
        match rcpt_to {
            Some(rcpt_to) => self.text.replace(Self::RECIPIENT, rcpt_to),
            None => self.text.clone(),
        }
    }

    pub(super) fn bounded(&self) -> Self {
        let cut = |text: &str, bytes_max| text[..text.floor_char_boundary(bytes_max)].to_owned();
        Self {
            text: cut(&self.text, Self::TEXT_BYTES_MAX),
            mx: cut(&self.mx, Self::NAME_BYTES_MAX),
            remote_ip: cut(&self.remote_ip, Self::NAME_BYTES_MAX),
            source_ip: cut(&self.source_ip, Self::NAME_BYTES_MAX),
            tls: self.tls.as_ref().map(|tls| cut(tls, Self::NAME_BYTES_MAX)),
            tls_policy: self.tls_policy.as_ref().map(|policy| cut(policy, Self::NAME_BYTES_MAX)),
            without_tls: self.without_tls.as_ref().map(|problem| cut(problem, Self::TEXT_BYTES_MAX)),
            dkim: self.dkim.as_ref().map(|keys| cut(keys, Self::TEXT_BYTES_MAX)),
            phase: cut(&self.phase, Self::NAME_BYTES_MAX),
            provider: self.provider.as_ref().map(|provider| cut(provider, Self::NAME_BYTES_MAX)),
            ip_pool: self.ip_pool.as_ref().map(|pool| cut(pool, Self::NAME_BYTES_MAX)),
            ..*self
        }
    }
}

/// A flight that a previous process left in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredFlight {
    pub key: FlightKey,
    pub outcome: RecoveredOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is at most one for each flight whose outcome was not stored when a process ended"
)]
pub enum RecoveredOutcome {
    /// The reply is to be recorded. If it is an acceptance, the message must never be sent again.
    Replied(FinalReply),
    /// The last bytes may have been sent. This is recorded as a possible duplicate, and the message is retried.
    NoReply,
}
