//! Reply of a server: code, enhanced code and original text.

use std::fmt;

/// Class by the first digit of the code (RFC 5321 4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyClass {
    Positive,
    /// 3yz: the server expects more (the message, a password).
    Intermediate,
    Temporary,
    Permanent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// 200 to 599.
    pub code: u16,
    /// First enhanced code at the beginning of a line.
    pub enhanced: Option<EnhancedCode>,
    /// Text after the code, line by line, including the enhanced code. `ReplyReader` replaces control characters by
    /// spaces.
    pub lines: Vec<String>,
}

impl Reply {
    pub fn new(code: u16, lines: Vec<String>) -> Self {
        Self { code, enhanced: lines.iter().find_map(|line| EnhancedCode::find(line)), lines }
    }

    pub fn class(&self) -> ReplyClass {
        match self.code {
            0..300 => ReplyClass::Positive,
            300..400 => ReplyClass::Intermediate,
            400..500 => ReplyClass::Temporary,
            _ => ReplyClass::Permanent,
        }
    }

    pub fn is_positive(&self) -> bool {
        self.class() == ReplyClass::Positive
    }

    /// 4yz or 5yz.
    pub fn is_refusal(&self) -> bool {
        matches!(self.class(), ReplyClass::Temporary | ReplyClass::Permanent)
    }

    /// 421: the server closes the connection, allowed at any point (RFC 5321 4.2.1 and 3.8).
    pub fn is_closing(&self) -> bool {
        self.code == 421
    }

    /// All lines joined, for records.
    pub fn text(&self) -> String {
        self.lines.join(" ")
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.text())
    }
}

/// RFC 3463: `class.subject.detail`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnhancedCode {
    pub class: u8,
    pub subject: u16,
    pub detail: u16,
}

impl EnhancedCode {
    /// Finds the enhanced code at the beginning of a reply's text, before a space or the end (RFC 2034 4). Does
    /// not compare it with the reply's own class: some hosts send `550 4.7.1`, which the classification judges.
    pub fn find(text: &str) -> Option<Self> {
        let word = text.split(' ').next()?;
        let mut parts = word.split('.');
        let (class, subject, detail) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let class = match class {
            "2" => 2,
            "4" => 4,
            "5" => 5,
            _ => return None,
        };
        Some(Self { class, subject: parse_number(subject)?, detail: parse_number(detail)? })
    }
}

/// RFC 3463 2: one to three digits.
fn parse_number(digits: &str) -> Option<u16> {
    let is_number = (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

impl fmt::Display for EnhancedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.class, self.subject, self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enhanced_codes_are_found_at_the_beginning_only() {
        let cases = [
            ("5.1.1 no such user", Some("5.1.1")),
            ("5.7.511 Access denied", Some("5.7.511")),
            ("2.0.0", Some("2.0.0")),
            ("3.1.1 odd class", None),
            ("5.1 short", None),
            ("5.1.1.1 an address", None),
            ("5.1.1000 too long", None),
            ("5.1.+1 signed", None),
            ("mailbox 5.1.1", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let found = EnhancedCode::find(text).map(|code| code.to_string());
            assert_eq!(found.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn classes_follow_the_first_digit() {
        let class = |code| Reply::new(code, Vec::new()).class();
        assert_eq!(class(250), ReplyClass::Positive);
        assert_eq!(class(354), ReplyClass::Intermediate);
        assert_eq!(class(421), ReplyClass::Temporary);
        assert_eq!(class(599), ReplyClass::Permanent);
    }
}
