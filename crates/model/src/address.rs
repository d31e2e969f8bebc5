//! E-mail addresses (RFC 5321 4.1.2), with UTF-8 local parts (RFC 6531) and IDNA domains.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Limits;
use crate::domain::{DomainError, DomainName};

/// Valid address. Keeps the text as sent, and the domain in its DNS form.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EmailAddress {
    text: String,
    /// Index of the `@` in `text`.
    at_index: usize,
    domain: DomainName,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("the address is missing")]
    Empty,
    #[error("an address needs an @ between a local part and a domain")]
    NoAt,
    #[error("the address is longer than 254 bytes")]
    TooLong,
    #[error("a name with its address is longer than {} bytes", Limits::MAILBOX_BYTES_MAX)]
    MailboxTooLong,
    #[error("the part before the @ is longer than 64 bytes")]
    LocalTooLong,
    #[error("the part before the @ is not valid")]
    Local,
    #[error("{0}")]
    Domain(#[from] DomainError),
    #[error(
        "write one address, as `address` or `Name <address>`, with quotes around a name that has `@`, `<` or `>`"
    )]
    Mailbox,
}

impl EmailAddress {
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        // RFC 5321 4.5.3.1.3 (a path is 256 octets with its angle brackets).
        if text.len() > 254 {
            return Err(AddressError::TooLong);
        }
        let at_index = text.rfind('@').ok_or(AddressError::NoAt)?;
        let (local, domain) = (&text[..at_index], &text[at_index + 1..]);
        if local.len() > 64 {
            return Err(AddressError::LocalTooLong);
        }
        if !is_local_part(local) {
            return Err(AddressError::Local);
        }
        Ok(Self { text: text.to_owned(), at_index, domain: DomainName::parse(domain)? })
    }

    /// Address exactly as it was parsed.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn local_part(&self) -> &str {
        &self.text[..self.at_index]
    }

    pub fn domain(&self) -> &DomainName {
        &self.domain
    }

    /// Whether sending to this address needs SMTPUTF8 (RFC 6531). Only the local part matters: domains have an ASCII
    /// form.
    pub fn needs_smtputf8(&self) -> bool {
        !self.local_part().is_ascii()
    }

    /// Key of the mailbox: equal for addresses of the same mailbox. Compares local parts without ASCII case, as
    /// mailbox providers do: a person must not get a message twice.
    pub fn mailbox_key(&self) -> String {
        format!("{}@{}", self.local_part().to_ascii_lowercase(), self.domain)
    }

    /// Spellings in which texts may name the mailbox, with ASCII letters in lower case: with the domain in DNS form,
    /// with the domain in its own letters, and as the address was parsed.
    pub fn spellings(&self) -> Vec<String> {
        let unicode = format!("{}@{}", self.local_part().to_ascii_lowercase(), self.domain.to_unicode());
        let mut spellings = vec![self.mailbox_key()];
        for spelling in [unicode, self.text.to_ascii_lowercase()] {
            if !spellings.contains(&spelling) {
                spellings.push(spelling);
            }
        }
        spellings
    }
}

/// Whether a local part is valid: `Dot-string / Quoted-string` (RFC 5321 4.1.2).
fn is_local_part(local: &str) -> bool {
    match local.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').is_some_and(is_quoted_content),
        None => local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_char)),
    }
}

fn is_atom_char(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
    } else {
        // RFC 6531 3.3 allows all of UTF-8. Control and invisible characters are refused, because they mostly serve
        // attacks.
        !c.is_control() && !is_invisible(c)
    }
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn is_quoted_content(content: &str) -> bool {
    let mut chars = content.chars();
    while let Some(c) = chars.next() {
        let quoted = if c == '\\' {
            match chars.next() {
                Some(escaped) => escaped,
                None => return false,
            }
        } else if c == '"' {
            return false;
        } else {
            c
        };
        if quoted.is_control() || (!quoted.is_ascii() && is_invisible(quoted)) {
            return false;
        }
    }
    true
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl TryFrom<String> for EmailAddress {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        Self::parse(&text)
    }
}

impl From<EmailAddress> for String {
    fn from(address: EmailAddress) -> Self {
        address.text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_addresses_are_accepted() {
        for good in [
            "a@example.com",
            "a.b+c@example.com",
            "\"a b\"@example.com",
            "\"a\\\"b\"@example.com",
            "Ünï@bücher.example",
            "a@EXAMPLE.com",
            "!#$%&'*+-/=?^_`{|}~@example.com",
            "用户@例子.广告",
        ] {
            assert!(EmailAddress::parse(good).is_ok(), "{good:?}: {:?}", EmailAddress::parse(good));
        }
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for bad in [
            "",
            "a",
            "@example.com",
            "a@",
            "a@@example.com",
            ".a@example.com",
            "a.@example.com",
            "a..b@example.com",
            "a b@example.com",
            "a@example.com\r\n",
            "a\r\nb@example.com",
            "a\0@example.com",
            "\"a\"b\"@example.com",
            "\"a\\\"@example.com",
            "a@[127.0.0.1]",
            "<a@example.com>",
            "a@localhost",
            "a,b@example.com",
            "a\u{202e}b@example.com",
            "\"a\nb\"@example.com",
            &format!("{}@example.com", "a".repeat(65)),
        ] {
            assert!(EmailAddress::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn the_same_mailbox_has_one_key() {
        let key = |text| EmailAddress::parse(text).unwrap().mailbox_key();
        assert_eq!(key("Bob@Example.COM"), key("bob@example.com"));
        assert_ne!(key("bob@example.com"), key("bob+1@example.com"));
    }

    #[test]
    fn internationalised_domains_have_two_spellings() {
        let spellings = |text| EmailAddress::parse(text).unwrap().spellings();
        assert_eq!(spellings("Bob@Example.COM"), ["bob@example.com"]);
        let both = ["jane@xn--bcher-kva.example", "jane@bücher.example"];
        assert_eq!(spellings("Jane@Bücher.example"), both);
        assert_eq!(spellings("jane@xn--bcher-kva.example"), both);
        assert_eq!(spellings("jane@BÜCHER.example"), [both[0], both[1], "jane@bÜcher.example"]);
    }

    proptest! {
        #[test]
        fn no_accepted_address_has_a_line_break_or_nul(text in "\\PC{0,20}[\r\n\0<>]?\\PC{0,20}@example\\.com") {
            if let Ok(address) = EmailAddress::parse(&text) {
                let breaks = address.as_str().contains(['\r', '\n', '\0']);
                prop_assert!(!breaks);
            }
        }
    }
}
