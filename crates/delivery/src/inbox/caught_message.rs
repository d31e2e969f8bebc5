//! One caught message, as the inbox keeps it.

use bytes::Bytes;
use postroad_model::{EmailAddress, Timestamp};

use crate::local_smtp::IncomingMessage;

/// One recipient's copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaughtMessage {
    /// Counts up from 1 while the process runs.
    pub id: u64,
    /// Empty for the null sender.
    pub mail_from: String,
    pub rcpt_to: EmailAddress,
    /// The From header, decoded, with the sender's name if it has one; empty if there is none.
    pub from: String,
    /// The Subject header, decoded; empty if there is none.
    pub subject: String,
    /// The Message-ID without angle brackets; empty if there is none.
    pub message_id: String,
    /// HELO name of the client.
    pub helo: String,
    pub received_at: Timestamp,
    /// The message exactly as it was sent.
    pub raw: Bytes,
}

/// An entry for each recipient, with ids from `first_id` on; the entries share the bytes of the message.
pub(super) fn entries(
    received: &IncomingMessage,
    head: &Head,
    received_at: Timestamp,
    first_id: u64,
) -> impl Iterator<Item = CaughtMessage> {
    received.envelope.rcpt_to.iter().zip(first_id..).map(move |(rcpt, id)| CaughtMessage {
        id,
        mail_from: received.envelope.mail_from.path.to_string(),
        rcpt_to: rcpt.address.clone(),
        from: head.from.clone(),
        subject: head.subject.clone(),
        message_id: head.message_id.clone(),
        helo: received.helo.clone(),
        received_at,
        raw: received.bytes.clone(),
    })
}

/// The headers that an entry keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) from: String,
    pub(super) subject: String,
    pub(super) message_id: String,
}

impl Head {
    pub(super) fn of(bytes: &[u8]) -> Self {
        // Bodies are parsed only on request.
        let header_end = memchr::memmem::find(bytes, b"\r\n\r\n").unwrap_or(bytes.len());
        let mut head = Self::default();
        for (name, values) in postroad_mail::view(&bytes[..header_end]).headers {
            let first = values.into_iter().next().unwrap_or_default();
            match name.as_str() {
                "from" => head.from = first,
                "subject" => head.subject = first,
                "message-id" => first.trim_matches(['<', '>', ' ']).clone_into(&mut head.message_id),
                _ => {}
            }
        }
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_and_senders_are_decoded() {
        assert_eq!(
            Head::of(
                b"Message-ID: <x@y>\r\nFrom: =?utf-8?q?J=C3=BCrgen?= <j@y>\r\n\
                Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n an alle\r\n\r\nSubject: no"
            ),
            Head {
                from: "Jürgen <j@y>".to_owned(),
                subject: "Grüße an alle".to_owned(),
                message_id: "x@y".to_owned()
            }
        );
        assert_eq!(Head::of(b"A: b\r\n\r\nSubject: no"), Head::default());
        assert_eq!(Head::of(b""), Head::default());
    }
}
