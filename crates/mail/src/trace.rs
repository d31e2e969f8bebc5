//! Headers that delivery adds to each recipient's copy: `Received` (RFC 5321 4.4), which reveals loops, and the
//! identifier by which a complaint about the copy is recognised.

use postroad_model::{DomainName, MessageToken, Timestamp};

/// `Received` as one folded field with its line ending. `protocol` is how the message was submitted, such as `HTTP` or
/// `ESMTPSA` (RFC 3848). There is no `from`: the submitting computer is the sender's private matter.
pub fn received_field(hostname: &DomainName, token: &MessageToken, protocol: &str, at: Timestamp) -> String {
    format!("Received: by {hostname} (Postroad) with {protocol} id {token};\r\n\t{}\r\n", at.to_rfc2822())
}

/// Name of the header with the local part of the copy's return path. Feedback loops enclose the message, but few of
/// them report its return path.
///
/// The MAC in the identifier proves that it was created here, so DKIM need not cover the header. DKIM could not: the
/// header differs between the recipients of a send, but their copies share one signature.
pub const POSTROAD_ID_HEADER: &str = "X-Postroad-Id";

/// `X-Postroad-Id` as one field with its line ending. `id` comes from `ReturnPathKey::local_part`.
pub fn postroad_id_field(id: &str) -> String {
    format!("{POSTROAD_ID_HEADER}: {id}\r\n")
}

/// Whether this value of a `Received` header has the form that `received_field` writes, whatever its host.
pub(crate) fn is_own_received(value: &str) -> bool {
    value
        .strip_prefix("by ")
        .and_then(|rest| rest.split_once(' '))
        .is_some_and(|(_, rest)| rest.starts_with("(Postroad) "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_received_field_names_host_protocol_and_time() {
        let hostname = DomainName::parse("mx1.example.com").unwrap();
        let at = Timestamp::parse_rfc3339("2026-11-15T03:00:00.25Z").unwrap();
        let value = |field: String| field["Received: ".len()..].replace("\r\n", "");
        let token = MessageToken("aB3dE5fG7hI9jK1l".to_owned());
        assert!(is_own_received(&value(received_field(&hostname, &token, "HTTP", at))));
        assert!(!is_own_received("from mx by mx1.example.com (Postfix) with ESMTP; x"));
        assert_eq!(
            received_field(&hostname, &MessageToken("aB3dE5fG7hI9jK1l".to_owned()), "HTTP", at),
            "Received: by mx1.example.com (Postroad) with HTTP id aB3dE5fG7hI9jK1l;\r\n\
             \tSun, 15 Nov 2026 03:00:00 +0000\r\n"
        );
    }
}
