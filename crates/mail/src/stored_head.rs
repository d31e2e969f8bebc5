//! Facts about a message for delivery, search and forwarding, found without parsing all of it.

use postroad_model::DomainName;

use crate::address_list::parse_address_list;
use crate::header_block::HeaderBlock;

/// The domain of the first From address. `None` if From is missing, malformed or ambiguous; then only the
/// installation's key signs.
pub fn find_from_domain(message: &[u8]) -> Option<DomainName> {
    let from = HeaderBlock::new(message).find(|field| field.is("From"))?;
    let list = parse_address_list(from.value).ok()?;
    let (_, domain) = list.addresses.first()?.rsplit_once('@')?;
    DomainName::parse(domain).ok()
}

/// Whether a header needs SMTPUTF8 (RFC 6531 3.2).
pub fn has_utf8_header(message: &[u8]) -> bool {
    HeaderBlock::new(message).any(|field| !message[field.start..field.end].is_ascii())
}

/// Whether the message was already delivered to this address: then the message is in a loop.
pub fn is_delivered_to(message: &[u8], address: &str) -> bool {
    HeaderBlock::new(message)
        .filter(|field| field.is("Delivered-To"))
        .any(|field| field.unfolded().trim_matches(['<', '>']).eq_ignore_ascii_case(address))
}

/// Whether the message is marked as an attachment (RFC 2183 2.2), or has parts and a line that marks one of them so.
/// Cheap enough for every accepted message: bodies are not parsed, so a text part that quotes such a line counts too.
pub fn has_attachment(message: &[u8]) -> bool {
    const FIELD: &[u8] = b"content-disposition:";
    let mut has_parts = false;
    for field in HeaderBlock::new(message) {
        if field.is("Content-Disposition") && is_attachment(field.value) {
            return true;
        }
        let value = field.value.trim_ascii_start();
        has_parts |= field.is("Content-Type")
            && (starts_with(value, b"multipart/") || starts_with(value, b"message/"));
    }
    has_parts
        && memchr::memchr_iter(b'\n', message).any(|line_end| {
            let line = &message[line_end + 1..];
            starts_with(line, FIELD) && is_attachment(&line[FIELD.len()..])
        })
}

fn is_attachment(disposition: &[u8]) -> bool {
    starts_with(disposition.trim_ascii_start(), b"attachment")
}

fn starts_with(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_found_by_their_disposition() {
        let part = |field: &str| {
            format!(
                "Content-Type: Multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: x/y\r\n{field}\r\n\r\nx"
            )
        };
        assert!(has_attachment(part("Content-Disposition: attachment; filename=a.pdf").as_bytes()));
        assert!(has_attachment(part("CONTENT-DISPOSITION:\r\n Attachment").as_bytes()));
        assert!(!has_attachment(part("Content-Disposition: inline; filename=attachment").as_bytes()));
        assert!(!has_attachment(part("Content-Disp").as_bytes()));
        assert!(has_attachment(b"Content-Type: application/pdf\r\nContent-Disposition: attachment\r\n\r\nx"));
        let quoted = "Subject: x\r\n\r\nContent-Disposition: attachment\r\n";
        assert!(!has_attachment(quoted.as_bytes()), "a message without parts has no attachments");
        assert!(!has_attachment(b""));
    }

    fn domain(message: &str) -> Option<String> {
        find_from_domain(message.as_bytes()).map(|domain| domain.as_str().to_owned())
    }

    #[test]
    fn the_from_domain_is_that_of_the_first_from_address() {
        for (message, expected) in [
            ("From: a@Example.COM\r\n\r\n", "example.com"),
            ("To: x@y.example\r\nfrom: \"A, B\" <a@one.example>, c@two.example\r\n\r\n", "one.example"),
            ("From: team:\r\n a@one.example;\r\n\r\n", "one.example"),
            ("From: a@bücher.example\r\n\r\n", "xn--bcher-kva.example"),
            ("From: a@one.example\r\nFrom: b@two.example\r\n", "one.example"),
        ] {
            assert_eq!(domain(message).as_deref(), Some(expected), "{message:?}");
        }
    }

    #[test]
    fn a_missing_or_unusable_from_header_has_no_domain() {
        for message in [
            "",
            "To: a@x.example\r\n\r\n",
            "Subject: x\r\n\r\nFrom: a@x.example\r\n",
            "From: a@x.example <b@y.example>\r\n\r\n",
            "From: a@localhost\r\n\r\n",
        ] {
            assert_eq!(domain(message), None, "{message:?}");
        }
    }

    #[test]
    fn a_delivered_to_header_is_recognised_in_any_form() {
        for value in ["postmaster@mx.example", " <Postmaster@MX.example> ", "\r\n postmaster@mx.example"] {
            let message = format!("Subject: x\r\ndelivered-to: {value}\r\n\r\n");
            assert!(is_delivered_to(message.as_bytes(), "postmaster@mx.example"), "{message}");
        }
        assert!(!is_delivered_to(b"Delivered-To: a@x\r\n\r\nDelivered-To: b@x\r\n", "b@x"));
    }

    #[test]
    fn only_headers_make_a_message_need_smtputf8() {
        assert!(has_utf8_header("Subject: é\r\n\r\n".as_bytes()));
        assert!(has_utf8_header("To: a@x.example\r\nX-Last: é".as_bytes()));
        assert!(!has_utf8_header("Subject: e\r\n\r\né\r\n".as_bytes()));
        assert!(!has_utf8_header(b""));
    }
}
