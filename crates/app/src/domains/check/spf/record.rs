//! The SPF record as a list of terms (RFC 7208 4.6.1).

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::macros::DomainSpec;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct SpfRecord {
    pub(in super::super) terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Term {
    /// The term as it is published.
    pub(in super::super) text: String,
    pub(in super::super) kind: TermKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum TermKind {
    Directive {
        qualifier: Qualifier,
        mechanism: Mechanism,
    },
    Redirect(DomainSpec),
    /// `exp=` and unknown modifiers: they do not change the result.
    OtherModifier,
    /// Not a valid term, so that the whole record is invalid.
    Invalid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Qualifier {
    Pass,
    Fail,
    SoftFail,
    Neutral,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Mechanism {
    All,
    Include(DomainSpec),
    A {
        domain: Option<DomainSpec>,
        v4_bits: u8,
        v6_bits: u8,
    },
    Mx {
        domain: Option<DomainSpec>,
        v4_bits: u8,
        v6_bits: u8,
    },
    Ptr(Option<DomainSpec>),
    /// The mechanisms `ip4` and `ip6`.
    Ip(IpNet),
    Exists(DomainSpec),
}

/// Whether a TXT record is an SPF record (RFC 7208 4.5).
pub(in super::super) fn is_spf(text: &[u8]) -> bool {
    let Some((version, rest)) = text.split_at_checked(6) else { return false };
    version.eq_ignore_ascii_case(b"v=spf1") && matches!(rest.first(), None | Some(b' '))
}

impl SpfRecord {
    /// Parses a text for which [`is_spf`] is true. Invalid terms stay in the list.
    pub(in super::super) fn parse(text: &str) -> Self {
        let words = text.split(' ').filter(|word| !word.is_empty()).skip(1);
        let mut terms: Vec<Term> = words.map(Term::parse).collect();
        // RFC 7208 6: each of these modifiers at most once.
        for name in ["redirect=", "exp="] {
            let is_named = |term: &&mut Term| term.text.to_ascii_lowercase().starts_with(name);
            for second in terms.iter_mut().filter(is_named).skip(1) {
                second.kind = TermKind::Invalid;
            }
        }
        Self { terms }
    }

    pub(super) fn invalid_term(&self) -> Option<&Term> {
        self.terms.iter().find(|term| term.kind == TermKind::Invalid)
    }

    /// The `all` term, if it allows every sender that no earlier term matches.
    pub(super) fn plus_all(&self) -> Option<&Term> {
        let all = self.terms.iter().find(|term| term.is_all())?;
        let is_pass = matches!(all.kind, TermKind::Directive { qualifier: Qualifier::Pass, .. });
        is_pass.then_some(all)
    }

    /// The redirect; `None` if the record has an `all`, which overrides it (RFC 7208 6.1).
    pub(super) fn redirect(&self) -> Option<(&Term, &DomainSpec)> {
        if self.terms.iter().any(Term::is_all) {
            return None;
        }
        self.terms.iter().find_map(|term| match &term.kind {
            TermKind::Redirect(target) => Some((term, target)),
            _ => None,
        })
    }
}

impl Term {
    pub(super) fn parse(text: &str) -> Self {
        Self { text: text.to_owned(), kind: parse_kind(text).unwrap_or(TermKind::Invalid) }
    }

    pub(super) fn is_all(&self) -> bool {
        matches!(self.kind, TermKind::Directive { mechanism: Mechanism::All, .. })
    }

    /// Whether the term needs a DNS lookup (RFC 7208 4.6.4).
    pub(super) fn costs_lookup(&self) -> bool {
        match &self.kind {
            TermKind::Redirect(_) => true,
            TermKind::Directive { mechanism, .. } => !matches!(mechanism, Mechanism::All | Mechanism::Ip(_)),
            TermKind::OtherModifier | TermKind::Invalid => false,
        }
    }
}

fn parse_kind(text: &str) -> Option<TermKind> {
    if let Some((name, value)) = split_modifier(text) {
        return parse_modifier(name, value);
    }
    let (qualifier, rest) = match text.as_bytes().first()? {
        b'+' => (Qualifier::Pass, &text[1..]),
        b'-' => (Qualifier::Fail, &text[1..]),
        b'~' => (Qualifier::SoftFail, &text[1..]),
        b'?' => (Qualifier::Neutral, &text[1..]),
        _ => (Qualifier::Pass, text),
    };
    Some(TermKind::Directive { qualifier, mechanism: parse_mechanism(rest)? })
}

/// Name and value of a modifier; `None` for a directive.
fn split_modifier(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let mut bytes = name.bytes();
    let is_name = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    is_name.then_some((name, value))
}

fn parse_modifier(name: &str, value: &str) -> Option<TermKind> {
    match name.to_ascii_lowercase().as_str() {
        "redirect" => DomainSpec::parse(value).map(TermKind::Redirect),
        "exp" => DomainSpec::parse(value).map(|_| TermKind::OtherModifier),
        _ => value.bytes().all(|byte| (0x21..=0x7e).contains(&byte)).then_some(TermKind::OtherModifier),
    }
}

fn parse_mechanism(text: &str) -> Option<Mechanism> {
    let name_bytes = text.find([':', '/']).unwrap_or(text.len());
    let (name, rest) = text.split_at(name_bytes);
    let value = rest.strip_prefix(':');
    match name.to_ascii_lowercase().as_str() {
        "all" => rest.is_empty().then_some(Mechanism::All),
        "include" => Some(Mechanism::Include(DomainSpec::parse(value?)?)),
        "exists" => Some(Mechanism::Exists(DomainSpec::parse(value?)?)),
        "ptr" if rest.is_empty() => Some(Mechanism::Ptr(None)),
        "ptr" => Some(Mechanism::Ptr(Some(DomainSpec::parse(value?)?))),
        "ip4" => parse_network::<Ipv4Net>(value?, 32).map(|network| Mechanism::Ip(network.into())),
        "ip6" => parse_network::<Ipv6Net>(value?, 128).map(|network| Mechanism::Ip(network.into())),
        "a" => parse_hosts(rest).map(|(domain, v4_bits, v6_bits)| Mechanism::A { domain, v4_bits, v6_bits }),
        "mx" => {
            parse_hosts(rest).map(|(domain, v4_bits, v6_bits)| Mechanism::Mx { domain, v4_bits, v6_bits })
        }
        _ => None,
    }
}

/// Parses a network, written as an address with or without a prefix length.
fn parse_network<N: std::str::FromStr>(text: &str, bits: u8) -> Option<N> {
    let text = if text.contains('/') { text.to_owned() } else { format!("{text}/{bits}") };
    text.parse().ok()
}

/// Parses `[":" domain] ["/" bits] ["//" bits]`, which may follow `a` and `mx` (RFC 7208 5.6).
fn parse_hosts(rest: &str) -> Option<(Option<DomainSpec>, u8, u8)> {
    let (rest, v6_bits) = match rest.rsplit_once("//") {
        Some((rest, bits)) => (rest, parse_bits(bits, 128)?),
        None => (rest, 128),
    };
    // A slash inside a macro does not begin a prefix length.
    let (rest, v4_bits) = match rest.rsplit_once('/') {
        Some((rest, bits)) if !bits.contains('}') => (rest, parse_bits(bits, 32)?),
        _ => (rest, 32),
    };
    let domain = match rest.strip_prefix(':') {
        Some(domain) => Some(DomainSpec::parse(domain)?),
        None if rest.is_empty() => None,
        None => return None,
    };
    Some((domain, v4_bits, v6_bits))
}

fn parse_bits(text: &str, max: u8) -> Option<u8> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // RFC 7208 12: no leading zeros.
    if !is_number || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    text.parse().ok().filter(|bits| *bits <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spf_records_are_distinguished_from_other_texts() {
        for text in ["v=spf1", "v=spf1 -all", "V=SPF1 mx"] {
            assert!(is_spf(text.as_bytes()), "{text}");
        }
        for text in ["", "v=spf", "v=spf10 -all", "v=spf1;a", " v=spf1 -all", "\"v=spf1 -all\"", "spf2.0/pra"]
        {
            assert!(!is_spf(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn valid_terms_are_parsed_and_others_marked_invalid() {
        let valid = "+a a/24 a//64 a:x.example/24//64 mx mx:x.example ptr ptr:x.example ip4:192.0.2.1 \
                     ip4:192.0.2.0/24 ip6:2001:db8::/32 ip6:::1 exists:%{ir}.x.example include:x.example ?all \
                     -ALL redirect=x.example exp=x.example unknown=anything A:%{d/}.x.example";
        for term in valid.split_whitespace() {
            assert_ne!(Term::parse(term).kind, TermKind::Invalid, "{term}");
        }
        let invalid = "ipv4:192.0.2.1 ip4 ip4: ip4:192.0.2 ip4:192.0.2.1/33 ip4:2001:db8::1 ip6:192.0.2.1 include \
                       include: include:x exists a/33 a/024 a: mx//129 all:x all/8 redirect= redirect=x \
                       exp=x -redirect=x.example foo ~ a:x.example/ münchen";
        for term in invalid.split_whitespace() {
            assert_eq!(Term::parse(term).kind, TermKind::Invalid, "{term}");
        }
        let twice = SpfRecord::parse("v=spf1 redirect=a.example redirect=b.example");
        assert_eq!(twice.invalid_term().unwrap().text, "redirect=b.example");
        assert_eq!(SpfRecord::parse("v=spf1 redirect=a.example -all").redirect(), None);
    }
}
