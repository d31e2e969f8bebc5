//! Explains the faults of an SPF record in sentences.

use super::cost::Cost;
use super::evaluate::{LOOKUPS_MAX, PermError, PermReason};
use super::suggest::Suggestion;
use crate::domains::check::text::{listed, shown};

/// Maximum number of terms that a hint names with their lookups.
const COSTS_SHOWN_MAX: usize = 4;

/// Text that names the terms that the suggestion leaves out, then offers the suggestion after `lead`, such as `Change
/// it to`. The text has to follow a full sentence.
pub(super) fn offer(lead: &str, suggestion: &Suggestion) -> String {
    let Suggestion { text, void, dropped } = suggestion;
    let mut offer = String::new();
    if !void.is_empty() {
        let matches = if void.len() == 1 { "matches" } else { "match" };
        offer = format!("The new record leaves out {}, which {matches} nobody. ", all_named(void));
    }
    if !dropped.is_empty() {
        offer = format!(
            "{offer}The new record leaves out {}, and ends in ?all so that nobody is refused for that; correct and add again \
             what you need. ",
            all_named(dropped)
        );
    }
    format!("{offer}{lead}: {text}")
}

pub(super) fn several(count: usize, suggestion: &Suggestion) -> String {
    format!("You have {} SPF records. {}", number(count), offer("Replace them by this one", suggestion))
}

fn all_named(terms: &[String]) -> String {
    let terms: Vec<String> = terms.iter().map(|term| shown(term.as_bytes())).collect();
    terms.join(", ")
}

pub(super) fn refused(addresses: &[String], suggestion: &Suggestion) -> String {
    let (noun, addresses) = (if addresses.len() == 1 { "address" } else { "addresses" }, listed(addresses));
    let offer = offer("Change it to", suggestion);
    format!("Your SPF record does not allow this service's {noun} {addresses}. {offer}")
}

/// Hint for a correct record of a customer that leads to an incorrect record of this service.
pub(super) fn ours_is_at_fault(name: &str) -> String {
    format!(
        "Your SPF record is right, and there is nothing for you to change. But the SPF record of this service at {name} does \
         not list this service's addresses correctly: some are missing, or others are allowed. The operator has to correct it."
    )
}

pub(super) fn allows_everybody(domain: &str, term: &str, suggestion: &Suggestion) -> String {
    let term = shown(term.as_bytes());
    let start = format!("Your SPF record allows every server in the world to send as {domain} ({term}).");
    if term.trim_start_matches('+').eq_ignore_ascii_case("all") {
        return format!("{start} {}", offer("Change it to", suggestion));
    }
    format!("{start} Remove {term}.")
}

pub(super) fn too_many_lookups(cost: &Cost) -> String {
    let costliest = cost.terms.iter().take(COSTS_SHOWN_MAX);
    let costliest: Vec<String> =
        costliest.map(|(term, lookups)| format!("{} ({lookups})", shown(term.as_bytes()))).collect();
    format!(
        "Your SPF needs {} lookups; {LOOKUPS_MAX} are allowed. These terms cost most: {}.",
        cost.lookups,
        costliest.join(", ")
    )
}

/// Why receivers ignore a record as a whole.
pub(super) fn broken(domain: &str, error: &PermError, cost: &Cost, suggestion: &Suggestion) -> String {
    let offered = &offer("Change it to", suggestion);
    let term = shown(error.term.as_bytes());
    let is_own = |culprit: &str| culprit.eq_ignore_ascii_case(domain);
    match &error.reason {
        PermReason::TooManyLookups => {
            format!(
                "{} Remove those that no longer send for you. {}",
                too_many_lookups(cost),
                offer("Until then this record works for mail from here", suggestion)
            )
        }
        PermReason::TooManyVoids(terms) => {
            let terms: Vec<String> = terms.iter().map(|term| shown(term.as_bytes())).collect();
            format!(
                "Your SPF asks for records that do not exist: {}. More than two make receivers ignore it. {offered}",
                listed(&terms)
            )
        }
        PermReason::InvalidTerm { domain: culprit, .. } if is_own(culprit) => format!(
            "Your SPF record has an error, so receivers ignore all of it: {term} is not valid. {offered}"
        ),
        PermReason::InvalidTerm { domain: culprit, term: inner } => broken_elsewhere(
            &term,
            &format!(
                "the SPF record of {} has an error ({})",
                shown(culprit.as_bytes()),
                shown(inner.as_bytes())
            ),
            offered,
        ),
        PermReason::NoRecord { target } => {
            broken_elsewhere(&term, &format!("{} has no SPF record", shown(target.as_bytes())), offered)
        }
        PermReason::SeveralRecords { target } => {
            broken_elsewhere(&term, &format!("{} has several SPF records", shown(target.as_bytes())), offered)
        }
        PermReason::TooManyMailHosts { domain } => broken_elsewhere(
            &term,
            &format!("{} has more than ten mail servers", shown(domain.as_bytes())),
            offered,
        ),
        PermReason::Loop { .. } => broken_elsewhere(&term, "it leads back to itself", offered),
    }
}

fn broken_elsewhere(term: &str, why: &str, offered: &str) -> String {
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
            several(2, &suggestion),
            "You have two SPF records. Replace them by this one: v=spf1 mx ?all"
        );
        suggestion.void = terms(&["a:gone.example"]);
        assert_eq!(
            several(2, &suggestion),
            "You have two SPF records. The new record leaves out a:gone.example, which matches nobody. Replace them by this \
             one: v=spf1 mx ?all"
        );
        suggestion.dropped = terms(&["nonsense", "ip4:192.0.2"]);
        assert_eq!(
            several(4, &suggestion),
            "You have 4 SPF records. The new record leaves out a:gone.example, which matches nobody. The new record leaves \
             out nonsense, ip4:192.0.2, and ends in ?all so that nobody is refused for that; correct and add again what you \
             need. Replace them by this one: v=spf1 mx ?all"
        );
    }
}
