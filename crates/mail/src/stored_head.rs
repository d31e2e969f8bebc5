//! What delivery asks of a stored message's header section.

use postroad_model::DomainName;

use crate::address_list::parse_address_list;
use crate::header_block::HeaderBlock;

/// The domain of the first From address: whose key signs. `None` if there is no such address or it cannot be read
/// with certainty; the installation's key signs then.
pub fn find_from_domain(message: &[u8]) -> Option<DomainName> {
    let from = HeaderBlock::new(message).find(|field| field.is("From"))?;
    let list = parse_address_list(from.value).ok()?;
    let (_, domain) = list.addresses.first()?.rsplit_once('@')?;
    DomainName::parse(domain).ok()
}

/// Whether a header needs SMTPUTF8 to be sent as it is (RFC 6531 3.2).
pub fn has_utf8_header(message: &[u8]) -> bool {
    HeaderBlock::new(message).any(|field| !message[field.start..field.end].is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(message: &str) -> Option<String> {
        find_from_domain(message.as_bytes()).map(|domain| domain.as_str().to_owned())
    }

    #[test]
    fn the_first_from_address_decides() {
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
    fn an_unclear_sender_has_no_domain() {
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
    fn only_headers_make_a_message_need_smtputf8() {
        assert!(has_utf8_header("Subject: é\r\n\r\n".as_bytes()));
        assert!(has_utf8_header("To: a@x.example\r\nX-Last: é".as_bytes()));
        assert!(!has_utf8_header("Subject: e\r\n\r\né\r\n".as_bytes()));
        assert!(!has_utf8_header(b""));
    }
}
