//! Canonical form of a message for signing, computed once for all keys.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::body::hash_relaxed;
use super::header::push_relaxed;
use crate::header_block::{Field, HeaderBlock};

/// Headers that matter to a reader, determine how the body is shown (RFC 6376 5.4.1), or say where complaints go (RFC
/// 9477). Trace headers are excluded: relays change them.
const SIGNED_HEADERS: [&str; 19] = [
    "From",
    "Sender",
    "Reply-To",
    "To",
    "Cc",
    "Subject",
    "Date",
    "Message-ID",
    "In-Reply-To",
    "References",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "List-Id",
    "Feedback-ID",
    "CFBL-Address",
    "CFBL-Feedback-ID",
];

/// Headers that are signed once more than they are present, so that nobody can add another (RFC 6376 8.15). A mail
/// client might show a second `From` or `Subject`; a second `Content-Type` could show another body, a second
/// `List-Unsubscribe` another link, a second `CFBL-Address` another mailbox.
const OVERSIGNED_HEADERS: [&str; 14] = [
    "From",
    "Sender",
    "Reply-To",
    "To",
    "Cc",
    "Subject",
    "Date",
    "Message-ID",
    "Content-Type",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "Feedback-ID",
    "CFBL-Address",
    "CFBL-Feedback-ID",
];

/// The parts of a message that signatures cover: the hash of its body and its signed headers.
#[derive(Clone, PartialEq, Eq)]
pub struct Canonical {
    pub(super) body_hash_base64: String,
    /// Canonical headers, each with its line ending, in the order of `names`.
    pub(super) headers: Vec<u8>,
    /// Names of the signed headers: one for every instance, and one more for each of `OVERSIGNED_HEADERS`.
    pub(super) names: Vec<&'static str>,
}

impl Canonical {
    /// Canonicalises a message in one pass, without copying the body. The message has CRLF line endings, as all stored
    /// messages do.
    pub fn of(message: &[u8]) -> Self {
        Self::of_parts(b"", message)
    }

    /// Canonicalises a message with additional header fields on top.
    pub fn of_parts(added: &[u8], message: &[u8]) -> Self {
        let mut block = HeaderBlock::new(message);
        let mut found: [Vec<Field<'_>>; SIGNED_HEADERS.len()] = Default::default();
        for field in HeaderBlock::new(added).chain(block.by_ref()) {
            let name = field.name.trim_ascii_end();
            if let Some(index) =
                SIGNED_HEADERS.iter().position(|signed| name.eq_ignore_ascii_case(signed.as_bytes()))
            {
                found[index].push(field);
            }
        }
        let (mut headers, mut names) = (Vec::new(), Vec::new());
        for (name, fields) in SIGNED_HEADERS.into_iter().zip(found) {
            // RFC 6376 5.4.2: the lowest instance comes first.
            for field in fields.iter().rev() {
                push_relaxed(field.name, field.value, &mut headers);
                headers.extend_from_slice(b"\r\n");
                names.push(name);
            }
            if OVERSIGNED_HEADERS.contains(&name) {
                names.push(name);
            }
        }
        Self { body_hash_base64: STANDARD.encode(hash_relaxed(block.body())), headers, names }
    }
}

impl fmt::Debug for Canonical {
    /// Without the headers, which contain personal data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canonical")
            .field("body_hash", &self.body_hash_base64)
            .field("names", &self.names)
            .field("header_bytes", &self.headers.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_is_signed_from_the_bottom_up_and_some_headers_once_more() {
        let message = b"Received: by x\r\nto: b@x\r\nList-Id: 1\r\nFrom:  a@x\r\nLIST-ID: 2\r\nX-Other: y\r\n\r\nText\r\n";
        let canonical = Canonical::of(message);
        assert_eq!(
            canonical.names,
            [
                "From",
                "From",
                "Sender",
                "Reply-To",
                "To",
                "To",
                "Cc",
                "Subject",
                "Date",
                "Message-ID",
                "Content-Type",
                "List-Unsubscribe",
                "List-Unsubscribe-Post",
                "List-Id",
                "List-Id",
                "Feedback-ID",
                "CFBL-Address",
                "CFBL-Feedback-ID"
            ]
        );
        assert_eq!(canonical.headers, b"from:a@x\r\nto:b@x\r\nlist-id:2\r\nlist-id:1\r\n");
    }

    #[test]
    fn headers_on_top_count_as_if_they_were_in_the_message() {
        let (added, message) =
            (b"Feedback-ID: a\r\nList-Id: 0\r\n", b"List-Id: 1\r\nFrom: a@x\r\n\r\nText\r\n");
        let whole = [added.as_slice(), message].concat();
        assert_eq!(Canonical::of_parts(added, message), Canonical::of(&whole));
    }

    #[test]
    fn an_empty_body_has_the_hash_that_the_rfc_prints() {
        // RFC 6376 3.4.4
        let canonical = Canonical::of(b"From: a@x\r\n");
        assert_eq!(canonical.body_hash_base64, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(Canonical::of(b"From: a@x\r\n\r\n"), canonical);
    }

    #[test]
    fn addresses_are_not_printed() {
        assert!(!format!("{:?}", Canonical::of(b"From: somebody@x\r\n\r\n")).contains("somebody"));
    }
}
