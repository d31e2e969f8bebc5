//! Explains the faults of an SPF record in sentences.

use super::cost::Cost;
use super::evaluate::{LOOKUPS_MAX, PermError, PermErrorReason};
use super::suggest::Suggestion;
use crate::domains::check::text::{display_text, join_items};

/// Maximum number of terms that a hint names with their lookups.
const COSTS_SHOWN_MAX: usize = 4;

/// Text that names the terms that the suggestion leaves out, then offers the suggestion after `lead`, such as `Change
/// it to`. The text has to follow a full sentence.
pub(super) fn offer(lead: &str, suggestion: &Suggestion) -> String {
    let Suggestion { text, void, dropped } = suggestion;
    let mut offer = String::new();
    if !void.is_empty() {
        let matches = if void.len() == 1 { "matches" } else { "match" };
        offer = format!("The new record leaves out {}, which {matches} nobody. ", join_terms(void));
    }
    if !dropped.is_empty() {
        offer = format!(
            "{offer}The new record leaves out {}, and ends in ?all so that nobody is refused for that; correct and add again \
             what you need. ",
            join_terms(dropped)
        );
    }
    format!("{offer}{lead}: {text}")
}

pub(super) fn several_records(count: usize, suggestion: &Suggestion) -> String {
    format!("You have {} SPF records. {}", number(count), offer("Replace them by this one", suggestion))
}

fn join_terms(terms: &[String]) -> String {
    let terms: Vec<String> = terms.iter().map(|term| display_text(term.as_bytes())).collect();
    terms.join(", ")
}

pub(super) fn refused_addresses(addresses: &[String], suggestion: &Suggestion) -> String {
    let (noun, addresses) =
        (if addresses.len() == 1 { "address" } else { "addresses" }, join_items(addresses));
    let offer = offer("Change it to", suggestion);
    format!("Your SPF record does not allow this service's {noun} {addresses}. {offer}")
}

/// Hint for a correct record of a customer that leads to an incorrect record of this service.
pub(super) fn service_record_at_fault(name: &str) -> String {
    format!(
        "Your SPF record is right, and there is nothing for you to change. But the SPF record of this service at {name} does \
         not list this service's addresses correctly: some are missing, or others are allowed. The operator has to correct it."
    )
}

pub(super) fn allows_everybody(domain: &str, term: &str, suggestion: &Suggestion) -> String {
    let term = display_text(term.as_bytes());
    let start = format!("Your SPF record allows every server in the world to send as {domain} ({term}).");
    if term.trim_start_matches('+').eq_ignore_ascii_case("all") {
        return format!("{start} {}", offer("Change it to", suggestion));
    }
    format!("{start} Remove {term}.")
}

pub(super) fn too_many_lookups(cost: &Cost) -> String {
    let costliest = cost.terms.iter().take(COSTS_SHOWN_MAX);
    let costliest: Vec<String> =
        costliest.map(|(term, lookups)| format!("{} ({lookups})", display_text(term.as_bytes()))).collect();
    format!(
        "Your SPF needs {} lookups; {LOOKUPS_MAX} are allowed. These terms cost most: {}.",
        cost.lookups,
        costliest.join(", ")
    )
}

/// Why receivers ignore a record as a whole.
pub(super) fn broken_record(domain: &str, error: &PermError, cost: &Cost, suggestion: &Suggestion) -> String {
    let offered = &offer("Change it to", suggestion);
    let term = display_text(error.term.as_bytes());
    let is_own = |culprit: &str| culprit.eq_ignore_ascii_case(domain);
    match &error.reason {
        PermErrorReason::TooManyLookups => {
            format!(
                "{} Remove those that no longer send for you. {}",
                too_many_lookups(cost),
                offer("Until then this record works for mail from this service", suggestion)
            )
        }
        PermErrorReason::TooManyVoidLookups(terms) => {
            let terms: Vec<String> = terms.iter().map(|term| display_text(term.as_bytes())).collect();
            format!(
                "Your SPF asks for records that do not exist: {}. More than two make receivers ignore it. {offered}",
                join_items(&terms)
            )
        }
        PermErrorReason::InvalidTerm { domain: culprit, .. } if is_own(culprit) => format!(
            "Your SPF record has an error, so receivers ignore all of it: {term} is not valid. {offered}"
        ),
        PermErrorReason::InvalidTerm { domain: culprit, term: inner } => broken_by_term(
            &term,
            &format!(
                "the SPF record of {} has an error ({})",
                display_text(culprit.as_bytes()),
                display_text(inner.as_bytes())
            ),
            offered,
        ),
        PermErrorReason::NoRecord { target } => {
            broken_by_term(&term, &format!("{} has no SPF record", display_text(target.as_bytes())), offered)
        }
        PermErrorReason::SeveralRecords { target } => broken_by_term(
            &term,
            &format!("{} has several SPF records", display_text(target.as_bytes())),
            offered,
        ),
        PermErrorReason::TooManyMailHosts { domain } => broken_by_term(
            &term,
            &format!("{} has more than ten mail servers", display_text(domain.as_bytes())),
            offered,
        ),
        PermErrorReason::Loop { .. } => broken_by_term(&term, "it leads back to itself", offered),
    }
}

fn broken_by_term(term: &str, why: &str, offered: &str) -> String {
    format!("Receivers ignore your whole SPF record because of {term}: {why}. {offered}")
}

fn number(count: usize) -> String {
    match count {
        2 => "two".to_owned(),
        3 => "three".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_are_left_out_of_several_records_are_named_in_sentences() {
        let terms = |terms: &[&str]| terms.iter().map(|term| (*term).to_owned()).collect::<Vec<_>>();
        let mut suggestion =
            Suggestion { text: "v=spf1 mx ?all".to_owned(), void: Vec::new(), dropped: Vec::new() };
        assert_eq!(
            several_records(2, &suggestion),
            "You have two SPF records. Replace them by this one: v=spf1 mx ?all"
        );
        suggestion.void = terms(&["a:gone.example"]);
        assert_eq!(
            several_records(2, &suggestion),
            "You have two SPF records. The new record leaves out a:gone.example, which matches nobody. Replace them by this \
             one: v=spf1 mx ?all"
        );
        suggestion.dropped = terms(&["nonsense", "ip4:192.0.2"]);
        assert_eq!(
            several_records(4, &suggestion),
            "You have 4 SPF records. The new record leaves out a:gone.example, which matches nobody. The new record leaves \
             out nonsense, ip4:192.0.2, and ends in ?all so that nobody is refused for that; correct and add again what you \
             need. Replace them by this one: v=spf1 mx ?all"
        );
    }
}
