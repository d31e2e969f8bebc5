//! Domain specifications with macros (RFC 7208 7).

use std::fmt::Write as _;
use std::net::IpAddr;

/// RFC 7208 7.3: longer names lose labels from the left.
const NAME_BYTES_MAX: usize = 253;

/// Longer specifications count as errors; names have at most half as many bytes.
const SPEC_BYTES_MAX: usize = 512;

/// The domain part of an SPF term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct DomainSpec {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Macro { letter: u8, labels_kept: Option<usize>, reversed: bool, delimiters: Vec<char>, url_escaped: bool },
}

/// Values of macros. The local part of the sender is `postmaster`: the real one is not known here.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct MacroValues<'a> {
    pub(in super::super) address: IpAddr,
    pub(in super::super) helo: &'a str,
    /// The domain at which the evaluation began.
    pub(in super::super) sender_domain: &'a str,
    /// The domain whose record is being evaluated.
    pub(in super::super) domain: &'a str,
    /// A PTR name of the address that resolves back to the address; `unknown` without such a name.
    pub(in super::super) validated_name: &'a str,
}

impl DomainSpec {
    /// Parses a domain specification; `None` if `text` is not valid.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty()
            || text.len() > SPEC_BYTES_MAX
            || !text.bytes().all(|byte| (0x21..=0x7e).contains(&byte))
        {
            return None;
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            if at > 0 {
                pieces.push(Piece::Text(rest[..at].to_owned()));
            }
            let after = &rest[at + 1..];
            let (literal, used) = match after.bytes().next()? {
                b'%' => (Some("%"), 1),
                b'_' => (Some(" "), 1),
                b'-' => (Some("%20"), 1),
                b'{' => (None, after.find('}')? + 1),
                _ => return None,
            };
            pieces.push(match literal {
                Some(literal) => Piece::Text(literal.to_owned()),
                None => parse_macro(&after[1..used - 1])?,
            });
            rest = &after[used..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        let spec = Self { pieces };
        spec.ends_as_a_domain().then_some(spec)
    }

    /// RFC 7208 7.1: a valid specification ends in a macro, or in a top label that contains a letter or hyphen.
    fn ends_as_a_domain(&self) -> bool {
        let Some(Piece::Text(end)) = self.pieces.last() else { return true };
        let end = end.strip_suffix('.').unwrap_or(end);
        let Some((_, top)) = end.rsplit_once('.') else { return false };
        !top.is_empty()
            && top.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !top.bytes().all(|byte| byte.is_ascii_digit())
            && !top.starts_with('-')
            && !top.ends_with('-')
    }

    /// The name, if the specification has no macros.
    pub(super) fn without_macros(&self) -> Option<String> {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Macro { .. } => None,
        });
        let name = texts.collect::<Option<String>>()?;
        Some(name.trim_end_matches('.').to_owned())
    }

    /// Whether the name may differ between senders. The macro `v` does not count: it has only two values.
    pub(super) fn differs_by_sender(&self) -> bool {
        self.has_macro(b"iph")
    }

    pub(super) fn needs_validated_name(&self) -> bool {
        self.has_macro(b"p")
    }

    fn has_macro(&self, letters: &[u8]) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Macro { letter, .. } if letters.contains(letter)))
    }

    pub(in super::super) fn expand(&self, values: MacroValues<'_>) -> String {
        let mut name = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => name.push_str(text),
                Piece::Macro { letter, labels_kept, reversed, delimiters, url_escaped } => {
                    let value = value_of(*letter, values);
                    let mut parts: Vec<&str> = value.split(|c| delimiters.contains(&c)).collect();
                    if *reversed {
                        parts.reverse();
                    }
                    let skipped = labels_kept.map_or(0, |kept| parts.len().saturating_sub(kept));
                    let part = parts[skipped..].join(".");
                    name.push_str(&if *url_escaped { percent_encode(&part) } else { part });
                }
            }
        }
        let mut name = name.trim_end_matches('.');
        while name.len() > NAME_BYTES_MAX {
            let Some((_, shorter)) = name.split_once('.') else { break };
            name = shorter;
        }
        name.to_owned()
    }
}

/// Parses the text between the braces of a macro; `None` if the text is not valid.
fn parse_macro(text: &str) -> Option<Piece> {
    let mut bytes = text.bytes();
    let letter = bytes.next()?;
    // RFC 7208 7.2: c, r and t are for explanations only.
    if !b"slodiphv".contains(&letter.to_ascii_lowercase()) {
        return None;
    }
    let rest = &text[1..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let labels_kept = match &rest[..digits] {
        "" => None,
        number => Some(number.parse().ok().filter(|kept| *kept > 0)?),
    };
    let rest = &rest[digits..];
    let (reversed, delimiters) = match rest.strip_prefix(['r', 'R']) {
        Some(delimiters) => (true, delimiters),
        None => (false, rest),
    };
    if !delimiters.bytes().all(|byte| b".-+,/_=".contains(&byte)) {
        return None;
    }
    let delimiters = if delimiters.is_empty() { vec!['.'] } else { delimiters.chars().collect() };
    let url_escaped = letter.is_ascii_uppercase();
    Some(Piece::Macro { letter: letter.to_ascii_lowercase(), labels_kept, reversed, delimiters, url_escaped })
}

fn value_of(letter: u8, values: MacroValues<'_>) -> String {
    match letter {
        b's' => format!("postmaster@{}", values.sender_domain),
        b'l' => "postmaster".to_owned(),
        b'o' => values.sender_domain.to_owned(),
        b'd' => values.domain.to_owned(),
        b'i' => match values.address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => nibbles(u128::from(address)),
        },
        b'p' => values.validated_name.to_owned(),
        b'v' => if values.address.is_ipv4() { "in-addr" } else { "ip6" }.to_owned(),
        b'h' => values.helo.to_owned(),
        other => unreachable!("the parser takes no macro {other}"),
    }
}

/// An IPv6 address as `2.0.0.1.0.d.b.8…`.
fn nibbles(address: u128) -> String {
    let digits = format!("{address:032x}");
    digits.chars().map(|digit| digit.to_string()).collect::<Vec<String>>().join(".")
}

/// Percent-encodes all but the unreserved characters (RFC 3986 2.3).
fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string does not fail");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(spec: &str, address: &str) -> String {
        let values = MacroValues {
            address: address.parse().unwrap(),
            helo: "mail.host.example",
            sender_domain: "email.example.com",
            domain: "email.example.com",
            validated_name: "unknown",
        };
        DomainSpec::parse(spec).unwrap_or_else(|| panic!("{spec} was refused")).expand(values)
    }

    #[test]
    fn macro_examples_of_the_rfc_expand_as_documented() {
        // RFC 7208 7.4, with `postmaster` for `strong-bad`.
        for (spec, expected) in [
            ("%{s}.x.example", "postmaster@email.example.com.x.example"),
            ("%{o}", "email.example.com"),
            ("%{d4}", "email.example.com"),
            ("%{d2}", "example.com"),
            ("%{d1}", "com"),
            ("%{dr}", "com.example.email"),
            ("%{d2r}", "example.email"),
            ("%{l-}.%{d}", "postmaster.email.example.com"),
            ("%{ir}.%{v}._spf.%{d2}", "3.2.0.192.in-addr._spf.example.com"),
            ("%{h}.x.example", "mail.host.example.x.example"),
            ("%{p}._spf.example.com", "unknown._spf.example.com"),
            ("a%%b%_c.example.com", "a%b c.example.com"),
            ("%{S}.example.com", "postmaster%40email.example.com.example.com"),
        ] {
            assert_eq!(expand(spec, "192.0.2.3"), expected, "{spec}");
        }
        assert_eq!(
            expand("%{ir}.%{v}._spf.%{d2}", "2001:db8::cb01"),
            "1.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6._spf.example.com"
        );
    }

    #[test]
    fn invalid_domain_specifications_are_refused() {
        for bad in [
            "",
            "%",
            "%x.example.com",
            "%{}",
            "%{z}",
            "%{d",
            "%{d0}.x",
            "%{d!}.x",
            "localhost",
            "a.b.123",
            "a b.example.com",
            "münchen.example",
        ] {
            assert_eq!(DomainSpec::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_that_are_too_long_lose_labels_from_the_left() {
        let long = format!("{}.%{{d}}", vec!["a23456789"; 30].join("."));
        let name = expand(&long, "192.0.2.3");
        assert!(name.len() <= 253 && name.ends_with("a23456789.email.example.com"), "{name}");
    }
}
