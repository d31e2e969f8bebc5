//! Suggests an SPF record for a domain: the domain's existing terms, and the terms that allow our addresses.

use super::cost::cost;
use super::evaluate::{LOOKUPS_MAX, PermErrorReason};
use super::first_sender;
use super::merge::{InsertPosition, LeftOut, merge_records};
use super::record::{Mechanism, SpfRecord, Term, TermKind};
use super::repair::repair_terms;
use super::summary::Summary;
use crate::domains::check::answers::{AnswersView, NotAskedYet};
use crate::domains::check::record::RecordType;
use crate::domains::check::service::Service;

/// Maximum number of rounds of removing broken terms. A record that needs more rounds is not repaired further.
const ROUNDS_MAX: usize = 10;

/// A record to publish, and the existing terms that it leaves out.
pub(super) struct Suggestion {
    pub(super) text: String,
    /// Terms that match no sender.
    pub(super) void: Vec<String>,
    /// Terms that break the record but may have been meant for a sender: because of them the record ends in `?all`.
    pub(super) dropped: Vec<String>,
}

/// Merges the records into one, repairs or leaves out their broken terms, and adds our missing terms. Our include is
/// used only while the record stays within ten lookups; plain addresses cost none.
pub(super) fn suggest(
    view: &AnswersView<'_>,
    service: &Service,
    domain: &str,
    records: &[SpfRecord],
) -> Result<Suggestion, NotAskedYet> {
    let mut existing = ExistingRecords::of(records);
    if !service.is_spf_name_usable {
        existing.left_out.terms.push(format!("include:{}", service.spf_name()));
    }
    existing.leave_out_broken(view, service, domain)?;
    let text = existing.merge_with(&[], InsertPosition::Last);
    // Nothing has to be added to a record that allows all our addresses, but not everybody.
    if let Summary::Passed { allows_everybody: None } =
        Summary::of(view, service, domain, &SpfRecord::parse(&text))?
    {
        return Ok(existing.suggestion(text));
    }
    let mut terms = service.spf_terms();
    let text = existing.merge_with(&terms, InsertPosition::Last);
    if service.is_spf_name_usable
        && cost(view, first_sender(service, domain), &SpfRecord::parse(&text))?.lookups > LOOKUPS_MAX
    {
        terms = service.spf_address_terms();
        existing.left_out.terms.push(format!("include:{}", service.spf_name()));
    }
    let text = existing.merge_with(&terms, InsertPosition::Last);
    let text = match Summary::of(view, service, domain, &SpfRecord::parse(&text))? {
        Summary::Passed { .. } | Summary::Unknown(_) => text,
        // Earlier terms refuse our addresses, or receivers stop before they reach our terms.
        Summary::Refused(_) | Summary::Broken(_) => {
            existing.merge_with(&service.spf_address_terms(), InsertPosition::First)
        }
    };
    Ok(existing.suggestion(text))
}

/// The existing records, and the terms to leave out of them.
struct ExistingRecords {
    /// The records with their invalid terms repaired or dropped.
    records: Vec<SpfRecord>,
    left_out: LeftOut,
    /// As in `Suggestion`.
    void: Vec<String>,
    /// As in `Suggestion`.
    dropped: Vec<String>,
}

impl ExistingRecords {
    fn of(records: &[SpfRecord]) -> Self {
        let (records, dropped): (Vec<_>, Vec<_>) = records.iter().map(repair_terms).unzip();
        let dropped: Vec<String> = dropped.into_iter().flatten().collect();
        let left_out = LeftOut { terms: Vec::new(), may_allow: !dropped.is_empty() };
        Self { records, left_out, void: Vec::new(), dropped }
    }

    fn merge_with(&self, added: &[String], insert_at: InsertPosition) -> String {
        merge_records(&self.records, added, insert_at, &self.left_out)
    }

    fn suggestion(self, text: String) -> Suggestion {
        Suggestion { text, void: self.void, dropped: self.dropped }
    }

    /// Leaves out terms that break the record and lead nowhere. Errors inside included records are not repaired: they
    /// belong to the owners of those records.
    fn leave_out_broken(
        &mut self,
        view: &AnswersView<'_>,
        service: &Service,
        domain: &str,
    ) -> Result<(), NotAskedYet> {
        for _ in 0..ROUNDS_MAX {
            let record = SpfRecord::parse(&self.merge_with(&[], InsertPosition::Last));
            let Summary::Broken(error) = Summary::of(view, service, domain, &record)? else { break };
            let count = self.left_out.terms.len();
            match error.reason {
                PermErrorReason::TooManyVoidLookups(voids) => {
                    for term in record.terms.iter().filter(|term| voids.contains(&term.text)) {
                        if matches_no_address(view, domain, term)? {
                            self.left_out.terms.push(term.text.clone());
                            self.void.push(term.text.clone());
                        }
                    }
                }
                PermErrorReason::Loop { .. } if refers_to(&error.term, domain) => {
                    self.left_out.terms.push(error.term.clone());
                    self.void.push(error.term);
                }
                PermErrorReason::NoRecord { target } | PermErrorReason::Loop { target }
                    if refers_to(&error.term, &target) || target.eq_ignore_ascii_case(domain) =>
                {
                    self.left_out.terms.push(error.term.clone());
                    self.left_out.may_allow = true;
                    self.dropped.push(error.term);
                }
                _ => {}
            }
            if self.left_out.terms.len() == count {
                break;
            }
        }
        Ok(())
    }
}

/// Whether a term matches no address at all. A term that only matches none of ours does not count: a name with macros
/// may exist for other senders.
fn matches_no_address(view: &AnswersView<'_>, domain: &str, term: &Term) -> Result<bool, NotAskedYet> {
    let TermKind::Directive { mechanism, .. } = &term.kind else { return Ok(false) };
    let (spec, types) = match mechanism {
        Mechanism::A { domain: spec, .. } => (spec, &[RecordType::A, RecordType::Aaaa][..]),
        Mechanism::Mx { domain: spec, .. } => (spec, &[RecordType::Mx][..]),
        _ => return Ok(false),
    };
    let name = match spec {
        Some(spec) => spec.without_macros(),
        None => Some(domain.to_owned()),
    };
    let Some(name) = name else { return Ok(false) };
    for record_type in types {
        if !view.ask(&name, *record_type)?.is_absent() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the term is an include or redirect of this name.
fn refers_to(term: &str, target: &str) -> bool {
    term.split_once([':', '=']).is_some_and(|(_, name)| name.eq_ignore_ascii_case(target))
}
