//! One caught message, as it is listed and shown.

use bytes::Bytes;
use postroad_model::{EmailAddress, Timestamp};

use crate::local_smtp::Received;

/// One recipient's copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaughtMessage {
    /// Counts up from 1 while the process runs.
    pub id: u64,
    /// Empty for the null path.
    pub mail_from: String,
    pub rcpt_to: EmailAddress,
    /// Decoded; empty if there is none.
    pub subject: String,
    /// Name of the sending side in HELO.
    pub helo: String,
    pub received_at: Timestamp,
    /// Exactly the message that was sent.
    pub raw: Bytes,
}

/// An entry for each recipient, with ids from `first_id` on; they share the bytes.
pub(super) fn entries(
    received: &Received,
    subject: &str,
    received_at: Timestamp,
    first_id: u64,
) -> impl Iterator<Item = CaughtMessage> {
    received.envelope.rcpt_to.iter().zip(first_id..).map(move |(rcpt, id)| CaughtMessage {
        id,
        mail_from: received.envelope.mail_from.path.to_string(),
        rcpt_to: rcpt.address.clone(),
        subject: subject.to_owned(),
        helo: received.helo.clone(),
        received_at,
        raw: received.bytes.clone(),
    })
}

pub(super) fn subject(bytes: &[u8]) -> String {
    // Bodies are looked at when somebody asks for one.
    let header_end = memchr::memmem::find(bytes, b"\r\n\r\n").unwrap_or(bytes.len());
    let view = postroad_mail::view(&bytes[..header_end]);
    let field = view.headers.into_iter().find(|(name, _)| name == "subject");
    field.and_then(|(_, values)| values.into_iter().next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_decoded() {
        assert_eq!(
            subject(b"A: b\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n an alle\r\n\r\nSubject: no"),
            "Grüße an alle"
        );
        assert_eq!(subject(b"A: b\r\n\r\nSubject: no"), "");
        assert_eq!(subject(b""), "");
    }
}
