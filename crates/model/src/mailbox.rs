//! Mailboxes in the form `Name <address>`, as in `from` and recipient lists.

use serde::{Deserialize, Serialize};

use crate::Limits;
use crate::address::{AddressError, EmailAddress};

/// Address with an optional display name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mailbox {
    pub name: Option<String>,
    pub address: EmailAddress,
}

impl Mailbox {
    /// Parses one mailbox: `addr`, `<addr>`, `Name <addr>` or `"Quoted \"name\"" <addr>`. Accepts an unquoted
    /// comma in the name, because the caller knows that this is one mailbox. Refuses an unquoted `@` or
    /// bracket: that would be several mailboxes, of which all but the last would end up in the name.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim_matches([' ', '\t']);
        if text.len() > Limits::MAILBOX_BYTES_MAX {
            return Err(AddressError::MailboxTooLong);
        }
        let Some(before_close) = text.strip_suffix('>') else {
            return Ok(Self { name: None, address: EmailAddress::parse(text)? });
        };
        let open = before_close.rfind('<').ok_or(AddressError::Mailbox)?;
        let address = EmailAddress::parse(&before_close[open + 1..])?;
        Ok(Self { name: parse_name(&before_close[..open])?, address })
    }
}

/// Text after the last `@`, without a closing bracket: the domain a mailbox claims, even if the rest is invalid. The
/// From check uses it to answer before the syntax check.
pub fn claimed_domain(text: &str) -> Option<&str> {
    let text = text.trim_matches([' ', '\t']);
    text.strip_suffix('>').unwrap_or(text).rsplit_once('@').map(|(_, domain)| domain)
}

fn parse_name(text: &str) -> Result<Option<String>, AddressError> {
    let text = text.trim_matches([' ', '\t']);
    if text.chars().any(char::is_control) {
        return Err(AddressError::Mailbox);
    }
    let name = match text.strip_prefix('"') {
        None if text.contains(['@', '<', '>']) => return Err(AddressError::Mailbox),
        None => text.to_owned(),
        Some(rest) => unquote(rest.strip_suffix('"').ok_or(AddressError::Mailbox)?)?,
    };
    Ok((!name.is_empty()).then_some(name))
}

fn unquote(content: &str) -> Result<String, AddressError> {
    let mut plain = String::with_capacity(content.len());
    let mut chars = content.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(chars.next().ok_or(AddressError::Mailbox)?),
            '"' => return Err(AddressError::Mailbox),
            other => plain.push(other),
        }
    }
    Ok(plain)
}

/// Splits a comma-separated list of mailboxes; commas in quotes and angle brackets do not count. Skips blank entries.
/// Lazy: a caller with a limit takes one entry more than its limit to detect an excess.
pub fn split_address_list(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    let entries = std::iter::from_fn(move || {
        let text = rest?;
        let end = find_comma(text);
        rest = end.map(|at| &text[at + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    });
    entries.filter(|entry| !entry.trim().is_empty())
}

/// First comma that separates two mailboxes.
fn find_comma(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped, mut bracketed) = (false, false, false);
    text.bytes().position(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'<' if !quoted => bracketed = true,
            b'>' if !quoted => bracketed = false,
            b',' if !quoted && !bracketed => return true,
            _ => {}
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Option<String>, String) {
        let mailbox = Mailbox::parse(text).unwrap();
        (mailbox.name, mailbox.address.to_string())
    }

    #[test]
    fn mailboxes_are_parsed_in_every_form() {
        let address = || "a@example.com".to_owned();
        assert_eq!(parsed("a@example.com"), (None, address()));
        assert_eq!(parsed(" <a@example.com> "), (None, address()));
        assert_eq!(parsed("Ann Ü <a@example.com>"), (Some("Ann Ü".into()), address()));
        assert_eq!(parsed("Doe, Ann <a@example.com>"), (Some("Doe, Ann".into()), address()));
        assert_eq!(parsed(r#""Doe, \"A\"" <a@example.com>"#), (Some(r#"Doe, "A""#.into()), address()));
    }

    #[test]
    fn names_that_could_break_a_header_or_hide_an_address_are_refused() {
        for bad in [
            "a\r\nBcc: b@x.com <a@example.com>",
            "\"a\" b\" <a@example.com>",
            "a@example.com>",
            "x <a@example.com> y",
        ] {
            assert!(Mailbox::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn address_lists_are_split_at_commas_outside_quotes() {
        let list = r#""Doe, Ann" <a@x.com>, b@x.com,, c <c@x.com>"#;
        assert_eq!(
            split_address_list(list).collect::<Vec<_>>(),
            [r#""Doe, Ann" <a@x.com>"#, " b@x.com", " c <c@x.com>"]
        );
    }

    #[test]
    fn the_claimed_domain_is_after_the_last_at() {
        assert_eq!(claimed_domain("a b <x@@example.com>"), Some("example.com"));
        assert_eq!(claimed_domain("nothing"), None);
    }
}
