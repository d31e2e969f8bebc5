//! Paths of MAIL and RCPT (RFC 5321 4.1.2), parsed strictly: in angle brackets, without source routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use postroad_model::EmailAddress;

use super::envelope::ReversePath;
use super::replies::StandardReply;

/// Splits the text between the brackets from the text after them.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('<')?;
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in inner.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '>' if !is_quoted => return Some((&inner[..at], &inner[at + 1..])),
            _ => {}
        }
    }
    None
}

pub(super) fn parse_sender(path: &str) -> Result<ReversePath, StandardReply> {
    if path.is_empty() {
        return Ok(ReversePath::Null);
    }
    refuse_route(path)?;
    match EmailAddress::parse(path) {
        Ok(address) => Ok(ReversePath::Address(address)),
        Err(_) if is_local(path) => Ok(ReversePath::Local(path.to_owned())),
        Err(_) => Err(StandardReply::BadSender),
    }
}

/// Parses a recipient. Refuses address literals, like everything without a domain.
pub(super) fn parse_recipient(path: &str) -> Result<EmailAddress, StandardReply> {
    refuse_route(path)?;
    EmailAddress::parse(path).map_err(|_| StandardReply::BadRecipient)
}

/// Refuses source routes such as `@one,@two:user@three`, as RFC 5321 F.2 permits: today only spammers use them.
fn refuse_route(path: &str) -> Result<(), StandardReply> {
    if path.starts_with('@') { Err(StandardReply::SourceRoute) } else { Ok(()) }
}

/// Whether the path is `user@host` or `user@[address]`.
fn is_local(path: &str) -> bool {
    let Some((local_part, host)) = path.rsplit_once('@') else { return false };
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(literal) => is_address(literal),
        None => is_label(host),
    };
    // The local part must be valid as in an address with a domain.
    is_host && path.len() <= 254 && EmailAddress::parse(&format!("{local_part}@host.invalid")).is_ok()
}

/// Whether the text between the brackets is an address (RFC 5321 4.1.3).
fn is_address(literal: &str) -> bool {
    match literal.split_at_checked(5) {
        Some((tag, address)) if tag.eq_ignore_ascii_case("IPv6:") => address.parse::<Ipv6Addr>().is_ok(),
        _ => literal.parse::<Ipv4Addr>().map(IpAddr::from).is_ok(),
    }
}

fn is_label(host: &str) -> bool {
    (1..=63).contains(&host.len())
        && !host.starts_with('-')
        && !host.ends_with('-')
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_quotes_do_not_end_a_path() {
        assert_eq!(split("<a@b.c> SIZE=1"), Some(("a@b.c", " SIZE=1")));
        assert_eq!(split("<>"), Some(("", "")));
        assert_eq!(split(r#"<"a>\">"@b.c>x"#), Some((r#""a>\">"@b.c"#, "x")));
        for bad in ["", "a@b.c", "<a@b.c", r#"<"a@b.c>"#, " <a@b.c>"] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }

    #[test]
    fn senders_may_have_a_single_label_or_an_address_literal() {
        assert_eq!(parse_sender(""), Ok(ReversePath::Null));
        assert!(matches!(parse_sender("a@example.org"), Ok(ReversePath::Address(_))));
        for local in ["root@localhost", "a@[192.0.2.1]", "a@[IPv6:2001:db8::1]", "\"a b\"@web-1"] {
            assert_eq!(parse_sender(local), Ok(ReversePath::Local(local.to_owned())));
        }
        for bad in ["a", "@", "a@", "a@-x", "a@[1.2.3]", "a@[IPv6:x]", "a b@host", "a@b_c", "a@x\u{fc}"] {
            assert!(matches!(parse_sender(bad), Err(_) | Ok(ReversePath::Null)), "{bad}");
        }
    }

    #[test]
    fn recipients_need_a_domain() {
        assert!(parse_recipient("\"odd @ name\"@example.org").is_ok());
        for bad in
            ["", "postmaster", "root@localhost", "a@[192.0.2.1]", "a!b", "a@b@example.org", "a b@x.org"]
        {
            assert_eq!(parse_recipient(bad), Err(StandardReply::BadRecipient), "{bad}");
        }
        assert_eq!(parse_recipient("@relay.org:a@example.org"), Err(StandardReply::SourceRoute));
        assert_eq!(parse_sender("@relay.org:a@example.org"), Err(StandardReply::SourceRoute));
    }
}
