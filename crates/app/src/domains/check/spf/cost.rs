//! Counts the DNS lookups of a whole SPF record, and finds the most expensive terms.

use super::evaluate::{PublishedSpf, Sender, parse_published};
use super::macros::MacroValues;
use super::record::{Mechanism, SpfRecord, Term, TermKind};
use crate::domains::check::answers::{AnswersView, NotAskedYet};
use crate::domains::check::record::RecordType;

/// Counting stops at this number of lookups.
const COUNTED_LOOKUPS_MAX: usize = 64;
/// Deepest nesting of includes and redirects that is followed.
const DEPTH_MAX: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Cost {
    pub(in super::super) lookups: usize,
    /// The terms that need lookups, each with the number of lookups that it causes in total; most expensive first.
    pub(in super::super) terms: Vec<(String, usize)>,
}

/// The DNS lookups that the record costs a receiver if no term matches the sender.
pub(in super::super) fn cost(
    view: &AnswersView<'_>,
    sender: Sender<'_>,
    record: &SpfRecord,
) -> Result<Cost, NotAskedYet> {
    let mut counter =
        CostCounter { view, sender, counted: 0, names: vec![sender.domain.to_ascii_lowercase()] };
    let mut terms = counter.term_costs(sender.domain, record)?;
    let lookups = terms.iter().map(|(_, lookups)| lookups).sum();
    terms.sort_by_key(|(_, lookups)| std::cmp::Reverse(*lookups));
    Ok(Cost { lookups, terms })
}

struct CostCounter<'a> {
    view: &'a AnswersView<'a>,
    sender: Sender<'a>,
    /// Lookups counted so far.
    counted: usize,
    /// Names of the records being counted, the outermost first.
    names: Vec<String>,
}

impl CostCounter<'_> {
    fn term_costs(&mut self, domain: &str, record: &SpfRecord) -> Result<Vec<(String, usize)>, NotAskedYet> {
        let mut terms = Vec::new();
        // Visit every term before reporting a missing answer, so that the questions are asked together.
        let mut answered = Ok(());
        let redirect = record.redirect().map(|(term, _)| term);
        let before_all = record.terms.iter().take_while(|term| !term.is_all());
        let counted_terms = before_all.filter(|term| {
            matches!(term.kind, TermKind::Directive { .. }) && term.costs_lookup() || Some(*term) == redirect
        });
        for term in counted_terms {
            if self.counted >= COUNTED_LOOKUPS_MAX {
                break;
            }
            self.counted += 1;
            match self.inner_cost(domain, term) {
                Ok(lookups) => terms.push((term.text.clone(), 1 + lookups)),
                Err(unasked) => answered = Err(unasked),
            }
        }
        answered.map(|()| terms)
    }

    /// Number of lookups of the record that a term includes or redirects to; 0 for other terms.
    fn inner_cost(&mut self, domain: &str, term: &Term) -> Result<usize, NotAskedYet> {
        let (TermKind::Directive { mechanism: Mechanism::Include(target), .. } | TermKind::Redirect(target)) =
            &term.kind
        else {
            return Ok(0);
        };
        let target = target.expand(MacroValues {
            address: self.sender.address,
            helo: self.sender.helo,
            sender_domain: self.sender.domain,
            domain,
            validated_name: "unknown",
        });
        let target = target.to_ascii_lowercase();
        if self.names.contains(&target) || self.names.len() > DEPTH_MAX {
            return Ok(0);
        }
        let PublishedSpf::One(record) = parse_published(self.view.ask(&target, RecordType::Txt)?) else {
            return Ok(0);
        };
        self.names.push(target.clone());
        let term_costs = self.term_costs(&target, &record);
        self.names.pop();
        Ok(term_costs?.iter().map(|(_, lookups)| lookups).sum())
    }
}
