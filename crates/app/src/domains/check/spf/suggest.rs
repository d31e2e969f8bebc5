//! The SPF record that a domain should have: what it has, and us.

use super::cost::cost;
use super::evaluate::{LOOKUPS_MAX, PermReason};
use super::merge::{Place, merged};
use super::record::SpfRecord;
use super::{Summary, first_sender};
use crate::domains::check::answers::{Unasked, View};
use crate::domains::check::service::Service;

/// Broken terms that are left out; a record with more is not repaired further.
const LEFT_OUT_MAX: usize = 10;

/// The records merged into one, without terms that make receivers ignore all of it, with our terms where they are missing.
/// Our include is used only while the record stays within ten lookups; addresses cost none.
pub(super) fn suggest(
    view: &View<'_>,
    service: &Service,
    domain: &str,
    records: &[SpfRecord],
) -> Result<String, Unasked> {
    let mut left_out = Vec::new();
    if !service.is_spf_name_usable {
        left_out.push(format!("include:{}", service.spf_name()));
    }
    let theirs = theirs_alone(view, service, domain, records, &mut left_out)?;
    // Nothing of ours is missing, and nobody is allowed who should not be.
    if let Summary::Passed { allows_everybody: None } = Summary::of(view, service, domain, &theirs.record)? {
        return Ok(theirs.text);
    }
    let mut terms = service.spf_terms();
    let text = merged(records, &terms, Place::Last, &left_out);
    if service.is_spf_name_usable
        && cost(view, first_sender(service, domain), &SpfRecord::parse(&text))?.lookups > LOOKUPS_MAX
    {
        terms = service.spf_address_terms();
        left_out.push(format!("include:{}", service.spf_name()));
    }
    let text = merged(records, &terms, Place::Last, &left_out);
    Ok(match Summary::of(view, service, domain, &SpfRecord::parse(&text))? {
        Summary::Passed { .. } | Summary::Unknown(_) => text,
        // Terms before ours refuse us, or receivers give up before they come to ours.
        Summary::Refused(_) | Summary::Broken(_) => {
            merged(records, &service.spf_address_terms(), Place::First, &left_out)
        }
    })
}

struct Theirs {
    text: String,
    record: SpfRecord,
}

/// Their records as one, without terms that lead nowhere; what was left out is added to `left_out`.
fn theirs_alone(
    view: &View<'_>,
    service: &Service,
    domain: &str,
    records: &[SpfRecord],
    left_out: &mut Vec<String>,
) -> Result<Theirs, Unasked> {
    for _ in 0..LEFT_OUT_MAX {
        let text = merged(records, &[], Place::Last, left_out);
        let record = SpfRecord::parse(&text);
        let Summary::Broken(error) = Summary::of(view, service, domain, &record)? else { break };
        let is_own = |text: &String| record.terms.iter().any(|term| term.text == *text);
        let terms: Vec<String> = match error.reason {
            PermReason::TooManyVoids(terms) => terms.into_iter().filter(is_own).collect(),
            // A mistake further in is somebody else's, and may be repaired.
            PermReason::NoRecord { target } | PermReason::Circle { target }
                if names(&error.term, &target) || target.eq_ignore_ascii_case(domain) =>
            {
                vec![error.term]
            }
            _ => Vec::new(),
        };
        if terms.is_empty() {
            break;
        }
        left_out.extend(terms);
    }
    let text = merged(records, &[], Place::Last, left_out);
    Ok(Theirs { record: SpfRecord::parse(&text), text })
}

/// Whether an include or redirect is of this name.
fn names(term: &str, target: &str) -> bool {
    term.split_once([':', '=']).is_some_and(|(_, name)| name.eq_ignore_ascii_case(target))
}
