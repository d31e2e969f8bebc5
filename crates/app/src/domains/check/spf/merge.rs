//! Merges a domain's SPF records and missing terms into one record.

use std::collections::HashSet;

use super::record::{Mechanism, Qualifier, SpfRecord, Term, TermKind};

/// Position of the added terms in the merged record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InsertPosition {
    First,
    /// Directly before `all` or `redirect`.
    Last,
}

/// Existing terms that the merged record leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) terms: Vec<String>,
    /// Whether one of these terms, or of the invalid terms dropped before, may have allowed a sender. If so, the merged
    /// record ends in `?all`, so that this sender is not refused.
    pub(super) may_allow: bool,
}

/// Merges the terms of the records, except `left_out` and those after `all`, with the `added` ones. The result ends in
/// the mildest `all` of the records, but `+all` becomes `?all`.
pub(super) fn merge_records(
    records: &[SpfRecord],
    added: &[String],
    insert_at: InsertPosition,
    left_out: &LeftOut,
) -> String {
    let mut directives = Terms::default();
    let mut modifiers = Terms::default();
    let not_kept: HashSet<String> =
        left_out.terms.iter().chain(added).map(|text| normalise_term(text)).collect();
    let mut end: Option<Qualifier> = None;
    let mut redirects: Vec<(&str, &str)> = Vec::new();
    for record in records {
        let is_kept = |term: &&Term| !not_kept.contains(&normalise_term(&term.text));
        let kept = record.terms.iter().take_while(|term| !term.is_all()).filter(is_kept);
        kept.filter(|term| matches!(term.kind, TermKind::Directive { .. }))
            .for_each(|term| directives.push(term));
        let others = record.terms.iter().filter(|term| term.kind == TermKind::OtherModifier);
        others.for_each(|term| modifiers.push(term));
        end = mildest(end, qualifier_of_all(record));
        let redirect = record.redirect().map(|(term, _)| term).filter(is_kept);
        redirects.extend(redirect.and_then(|term| Some((term.text.as_str(), term.text.split_once('=')?.1))));
    }
    if left_out.may_allow {
        end = Some(Qualifier::Neutral);
    }
    let mut words = vec!["v=spf1".to_owned()];
    let (first, last) = if insert_at == InsertPosition::First { (added, &[][..]) } else { (&[][..], added) };
    words.extend_from_slice(first);
    words.append(&mut directives.texts);
    // A record can have only one end: next to `all` or another redirect, a redirect becomes an include.
    let kept_redirect = redirects.first().filter(|_| end.is_none() && redirects.len() == 1).copied();
    if kept_redirect.is_none() {
        words.extend(redirects.iter().map(|(_, target)| format!("include:{target}")));
    }
    words.extend_from_slice(last);
    words.extend(end.map(|end| all_term(end).to_owned()));
    words.extend(kept_redirect.map(|(text, _)| text.to_owned()));
    words.append(&mut modifiers.texts);
    words.join(" ")
}

#[derive(Default)]
struct Terms {
    texts: Vec<String>,
    known: HashSet<String>,
}

impl Terms {
    /// Adds the term unless it is already present.
    fn push(&mut self, term: &Term) {
        if self.known.insert(normalise_term(&term.text)) {
            self.texts.push(term.text.clone());
        }
    }
}

/// Normal form of a term: `+mx` and `MX` become `mx`.
fn normalise_term(text: &str) -> String {
    text.strip_prefix('+').unwrap_or(text).to_ascii_lowercase()
}

fn qualifier_of_all(record: &SpfRecord) -> Option<Qualifier> {
    record.terms.iter().find_map(|term| match &term.kind {
        TermKind::Directive { qualifier, mechanism: Mechanism::All } => Some(*qualifier),
        _ => None,
    })
}

fn mildest(one: Option<Qualifier>, other: Option<Qualifier>) -> Option<Qualifier> {
    let mildness = |qualifier: &Qualifier| match qualifier {
        Qualifier::Fail => 0,
        Qualifier::SoftFail => 1,
        Qualifier::Neutral => 2,
        Qualifier::Pass => 3,
    };
    [one, other].into_iter().flatten().max_by_key(mildness)
}

fn all_term(qualifier: Qualifier) -> &'static str {
    match qualifier {
        Qualifier::Fail => "-all",
        Qualifier::SoftFail => "~all",
        // Not `~all`: the domain's other servers, which no term names, would get a softfail.
        Qualifier::Neutral | Qualifier::Pass => "?all",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(records: &[&str], expected: &str) {
        let records: Vec<SpfRecord> = records.iter().map(|record| SpfRecord::parse(record)).collect();
        let ours = ["include:spf.host.example".to_owned()];
        assert_eq!(merge_records(&records, &ours, InsertPosition::Last, &LeftOut::default()), expected);
    }

    #[test]
    fn our_term_comes_before_the_end_of_the_record() {
        check(&["v=spf1 mx -all"], "v=spf1 mx include:spf.host.example -all");
        check(&["v=spf1 mx"], "v=spf1 mx include:spf.host.example");
        check(&["v=spf1"], "v=spf1 include:spf.host.example");
        check(&["v=spf1 redirect=a.example"], "v=spf1 include:spf.host.example redirect=a.example");
        check(&["v=spf1 mx exp=e.example ~all"], "v=spf1 mx include:spf.host.example ~all exp=e.example");
        check(&["v=spf1 ~all include:spf.host.example mx"], "v=spf1 include:spf.host.example ~all");
        check(&["v=spf1 a +include:SPF.host.example -all"], "v=spf1 a include:spf.host.example -all");
    }

    #[test]
    fn plus_all_becomes_neutral_all() {
        check(&["v=spf1 a +all"], "v=spf1 a include:spf.host.example ?all");
        check(&["v=spf1 a all"], "v=spf1 a include:spf.host.example ?all");
    }

    #[test]
    fn several_records_become_one_with_the_mildest_end() {
        check(
            &["v=spf1 include:a.example mx -all", "v=spf1 MX include:b.example ~all"],
            "v=spf1 include:a.example mx include:b.example include:spf.host.example ~all",
        );
        check(
            &["v=spf1 redirect=a.example", "v=spf1 mx -all"],
            "v=spf1 mx include:a.example include:spf.host.example -all",
        );
        check(
            &["v=spf1 redirect=a.example", "v=spf1 redirect=b.example"],
            "v=spf1 include:a.example include:b.example include:spf.host.example",
        );
        check(&["v=spf1 mx -all", "v=spf1 mx -all"], "v=spf1 mx include:spf.host.example -all");
    }

    #[test]
    fn broken_terms_are_left_out_and_our_terms_may_come_first() {
        let merged = |record: &str, may_allow| {
            let ours = ["ip4:192.0.2.9".to_owned()];
            let left_out = LeftOut { terms: vec!["include:gone.example".to_owned()], may_allow };
            merge_records(&[SpfRecord::parse(record)], &ours, InsertPosition::First, &left_out)
        };
        assert_eq!(merged("v=spf1 mx include:gone.example -all", false), "v=spf1 ip4:192.0.2.9 mx -all");
        assert_eq!(merged("v=spf1 mx include:gone.example -all", true), "v=spf1 ip4:192.0.2.9 mx ?all");
        assert_eq!(
            merged("v=spf1 include:gone.example redirect=a.example", true),
            "v=spf1 ip4:192.0.2.9 include:a.example ?all"
        );
    }
}
