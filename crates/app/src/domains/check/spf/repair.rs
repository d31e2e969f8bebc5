//! Repairs typing errors in SPF records where it is clear what was meant.

use std::net::IpAddr;

use ipnet::IpNet;

use super::record::{SpfRecord, Term, TermKind};

/// `v=spf1` and misspellings of it, in lower case and without spaces. Longer ones come first.
const VERSION_SPELLINGS: [&str; 12] = [
    "v=spf1", "v:spf1", "v-spf1", "v=sfp1", "vspf1", "v=spf", "v:spf", "v-spf", "v=sfp", "spf1", "vspf",
    "spf=",
];

/// Replaces invalid terms by the valid ones that they probably mean. Unclear terms are dropped and returned.
pub(super) fn repair_terms(record: &SpfRecord) -> (SpfRecord, Vec<String>) {
    let mut terms = Vec::with_capacity(record.terms.len());
    let mut dropped = Vec::new();
    for term in &record.terms {
        if term.kind != TermKind::Invalid {
            terms.push(term.clone());
        } else if let Some(mut repaired) = repair_term(&term.text) {
            terms.append(&mut repaired);
        } else {
            dropped.push(term.text.clone());
        }
    }
    (SpfRecord { terms }, dropped)
}

/// The rest of the text after `v=spf1` or a misspelling of it; `None` if the text is something else.
pub(super) fn strip_any_version(text: &str) -> Option<String> {
    let text = text.replace(['"', '\\'], "");
    let rest = VERSION_SPELLINGS.iter().find_map(|version| strip_version(&text, version))?;
    Some(rest.trim_start_matches([' ', '\t', ';', ',', ':', '.']).trim_end().to_owned())
}

fn strip_version<'a>(text: &'a str, version: &str) -> Option<&'a str> {
    let mut wanted = version.chars();
    let mut next = wanted.next();
    for (at, found) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        let Some(expected) = next else { return Some(&text[at..]) };
        if found.to_ascii_lowercase() != expected {
            return None;
        }
        next = wanted.next();
    }
    next.is_none().then_some("")
}

/// The terms that an invalid term probably means; `None` if that is unclear.
fn repair_term(text: &str) -> Option<Vec<Term>> {
    text.split([',', ';']).filter(|word| !word.is_empty()).map(repair_word).collect()
}

fn repair_word(word: &str) -> Option<Term> {
    let word = word.trim_matches(['"', '\'', '\\']).trim_end_matches('.');
    // Word processors turn hyphens into dashes.
    let word = match word.strip_prefix(['–', '—', '−']) {
        Some(rest) => format!("-{rest}"),
        None => word.to_owned(),
    };
    let term = Term::parse(&word);
    match &term.kind {
        TermKind::Invalid => {}
        // Usually a second redirect. An include of the same name allows the same senders.
        TermKind::Redirect(_) => return valid_term(&format!("include:{}", word.split_once('=')?.1)),
        TermKind::OtherModifier => return None,
        TermKind::Directive { .. } => return Some(term),
    }
    let (qualifier, rest) = word.split_at(usize::from(word.starts_with(['+', '-', '~', '?'])));
    let Some((name, value)) = rest.split_once([':', '=']) else {
        return valid_term(&format!("{qualifier}{}", network_term(rest)?));
    };
    match name.to_ascii_lowercase().as_str() {
        "ip" | "ip4" | "ipv4" | "ip6" | "ipv6" | "a" | "mx" => {
            valid_term(&format!("{qualifier}{}", network_term(value)?))
        }
        "includes" | "inlcude" | "incude" | "inculde" | "redirect" => {
            valid_term(&format!("{qualifier}include:{value}"))
        }
        // The colon may be part of an IPv6 address.
        _ => valid_term(&format!("{qualifier}{}", network_term(rest)?)),
    }
}

/// The term for an address or network: `ip4` or `ip6`, depending on the address.
fn network_term(text: &str) -> Option<String> {
    let address = text.parse::<IpAddr>().ok().or_else(|| Some(text.parse::<IpNet>().ok()?.addr()))?;
    Some(format!("{}:{text}", if address.is_ipv4() { "ip4" } else { "ip6" }))
}

fn valid_term(text: &str) -> Option<Term> {
    let term = Term::parse(text);
    (term.kind != TermKind::Invalid).then_some(term)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str, expected_dropped: &str) {
        let (record, dropped) = repair_terms(&SpfRecord::parse(&format!("v=spf1 {text}")));
        let texts: Vec<&str> = record.terms.iter().map(|term| term.text.as_str()).collect();
        assert_eq!(
            (texts.join(" ").as_str(), dropped.join(" ").as_str()),
            (expected, expected_dropped),
            "{text}"
        );
    }

    #[test]
    fn plain_typing_errors_are_repaired() {
        check("ipv4:192.0.2.1 ?IPv6:2001:db8::1 -all", "ip4:192.0.2.1 ?ip6:2001:db8::1 -all", "");
        check(
            "ip:192.0.2.0/24 ip4:2001:db8::1 ip6:192.0.2.1",
            "ip4:192.0.2.0/24 ip6:2001:db8::1 ip4:192.0.2.1",
            "",
        );
        check(
            "a:192.0.2.1 mx:192.0.2.2 192.0.2.3 2001:db8::1",
            "ip4:192.0.2.1 ip4:192.0.2.2 ip4:192.0.2.3 ip6:2001:db8::1",
            "",
        );
        check("a:x.example,include:y.example; , -all;", "a:x.example include:y.example -all", "");
        check("includes:x.example redirect:y.example –all", "include:x.example include:y.example -all", "");
        check("redirect=x.example redirect=y.example", "redirect=x.example include:y.example", "");
    }

    #[test]
    fn ambiguous_terms_are_dropped_and_named() {
        check("ip4:192.0.2 mx foo -all", "mx -all", "ip4:192.0.2 foo");
        check("a:x.example,foo ip4:192.0.2.1/33 - all", "all", "a:x.example,foo ip4:192.0.2.1/33 -");
    }

    #[test]
    fn misspelt_versions_are_recognised() {
        for (text, rest) in [
            ("v=spf1include:x.example -all", Some("include:x.example -all")),
            ("\"v=spf1 a -all\"", Some("a -all")),
            ("V = SPF1 a", Some("a")),
            ("v=spf1;a -all", Some("a -all")),
            ("spf1 mx", Some("mx")),
            ("v=spf mx", Some("mx")),
            ("v=spf1", Some("")),
            ("google-site-verification=1", None),
            ("v=DKIM1", None),
        ] {
            assert_eq!(strip_any_version(text).as_deref(), rest, "{text}");
        }
    }
}
