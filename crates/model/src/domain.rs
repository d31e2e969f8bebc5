//! Domain names in DNS form: lower-case ASCII, internationalised names as `xn--`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Fully qualified host or mail domain with at least two labels.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DomainName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    #[error("the domain is missing")]
    Empty,
    #[error("the domain is longer than 253 characters")]
    TooLong,
    #[error("the domain is not a valid internet domain name")]
    Syntax,
    #[error("the domain needs at least two parts, like example.com")]
    SingleLabel,
}

impl DomainName {
    pub fn parse(text: &str) -> Result<Self, DomainError> {
        if text.is_empty() {
            return Err(DomainError::Empty);
        }
        // Longer than any valid name in any encoding: skip the IDNA tables.
        if text.len() > 1_024 {
            return Err(DomainError::TooLong);
        }
        if text.bytes().any(|b| b.is_ascii_control() || b == b' ') {
            return Err(DomainError::Syntax);
        }
        let ascii = idna::domain_to_ascii_strict(text).map_err(|_| DomainError::Syntax)?;
        if ascii.len() > 253 {
            return Err(DomainError::TooLong);
        }
        if !ascii.split('.').all(is_label) {
            return Err(DomainError::Syntax);
        }
        let Some((_, last)) = ascii.rsplit_once('.') else {
            return Err(DomainError::SingleLabel);
        };
        // A name whose last label is all-numeric is an IPv4 address.
        if last.bytes().all(|b| b.is_ascii_digit()) {
            return Err(DomainError::Syntax);
        }
        Ok(Self(ascii))
    }

    /// Accepts surrounding blanks and the final dot of a fully qualified name, as people enter or paste names.
    pub fn parse_entered(text: &str) -> Result<Self, DomainError> {
        let text = text.trim();
        Self::parse(text.strip_suffix('.').unwrap_or(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name for people, with internationalised labels in their own letters.
    pub fn to_unicode(&self) -> String {
        idna::domain_to_unicode(&self.0).0
    }
}

/// Whether a label is valid (RFC 1035 2.3.1 as relaxed by RFC 1123 2.1).
fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= 63
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl TryFrom<String> for DomainName {
    type Error = DomainError;

    fn try_from(text: String) -> Result<Self, DomainError> {
        Self::parse(&text)
    }
}

impl From<DomainName> for String {
    fn from(domain: DomainName) -> Self {
        domain.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_the_dns_does() {
        assert_eq!(DomainName::parse("EXAMPLE.Com"), DomainName::parse("example.com"));
        assert_eq!(DomainName::parse("bücher.example").unwrap().as_str(), "xn--bcher-kva.example");
    }

    #[test]
    fn entered_names_may_end_with_a_dot() {
        for entered in ["example.com.", " EXAMPLE.com ", "example.com"] {
            assert_eq!(DomainName::parse_entered(entered).unwrap().as_str(), "example.com");
        }
        for bad in ["", ".", "example.com..", ".example.com", "com."] {
            assert!(DomainName::parse_entered(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn text_that_is_no_domain_is_refused() {
        for bad in [
            "",
            ".",
            "a..b",
            "-a.com",
            "a-.com",
            "a b.com",
            "exa_mple.com",
            "localhost",
            "127.0.0.1",
            "[127.0.0.1]",
            "example.com.",
            "a\r\n.com",
            "a\0.com",
            "exam ple.com",
            &"a".repeat(300),
            &format!("{}.com", "a".repeat(64)),
        ] {
            assert!(DomainName::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
