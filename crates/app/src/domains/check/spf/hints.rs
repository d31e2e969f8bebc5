//! What is wrong with an SPF record, in words.

use super::cost::Cost;
use super::evaluate::{LOOKUPS_MAX, PermError, PermReason};
use crate::domains::check::text::{listed, shown};

const COSTS_SHOWN_MAX: usize = 4;

pub(super) fn refused(addresses: &[String], value: &str) -> String {
    let (what, addresses) = (if addresses.len() == 1 { "address" } else { "addresses" }, listed(addresses));
    format!("Your SPF record does not allow this service's {what} {addresses}. Change it to: {value}")
}

pub(super) fn allows_everybody(domain: &str, term: &str, value: &str) -> String {
    let term = shown(term.as_bytes());
    let start = format!("Your SPF record allows every server in the world to send as {domain} ({term}).");
    if term.to_ascii_lowercase().ends_with("all") {
        return format!("{start} Change it to: {value}");
    }
    format!("{start} Remove {term}.")
}

pub(super) fn too_many_lookups(cost: &Cost) -> String {
    let dearest = cost.terms.iter().take(COSTS_SHOWN_MAX);
    let dearest: Vec<String> =
        dearest.map(|(term, lookups)| format!("{} ({lookups})", shown(term.as_bytes()))).collect();
    format!(
        "Your SPF needs {} lookups; {LOOKUPS_MAX} are allowed. These includes cost most: {}.",
        cost.lookups,
        dearest.join(", ")
    )
}

/// Why receivers ignore a record as a whole.
pub(super) fn broken(domain: &str, error: &PermError, cost: &Cost, value: &str) -> String {
    let term = shown(error.term.as_bytes());
    let is_ours = |culprit: &str| culprit.eq_ignore_ascii_case(domain);
    match &error.reason {
        PermReason::TooManyLookups => {
            format!(
                "{} Remove those that no longer send for you. Until then this record works for mail from here: {value}",
                too_many_lookups(cost)
            )
        }
        PermReason::TooManyVoids(terms) => {
            let terms: Vec<String> = terms.iter().map(|term| shown(term.as_bytes())).collect();
            format!(
                "Your SPF asks for names that do not exist: {}. More than two make receivers ignore it. Change it to: \
                 {value}",
                listed(&terms)
            )
        }
        PermReason::InvalidTerm { domain: culprit, .. } if is_ours(culprit) => format!(
            "Your SPF record has an error, so receivers ignore all of it: {term} is not valid. Change it to: {value}"
        ),
        PermReason::InvalidTerm { domain: culprit, term: inner } => broken_elsewhere(
            &term,
            &format!(
                "the SPF record of {} has an error ({})",
                shown(culprit.as_bytes()),
                shown(inner.as_bytes())
            ),
            value,
        ),
        PermReason::NoRecord { target } => {
            broken_elsewhere(&term, &format!("{} has no SPF record", shown(target.as_bytes())), value)
        }
        PermReason::SeveralRecords { target } => {
            broken_elsewhere(&term, &format!("{} has several SPF records", shown(target.as_bytes())), value)
        }
        PermReason::TooManyMailHosts { domain } => broken_elsewhere(
            &term,
            &format!("{} has more than ten mail servers", shown(domain.as_bytes())),
            value,
        ),
        PermReason::Circle { .. } => broken_elsewhere(&term, "it leads back to itself", value),
    }
}

fn broken_elsewhere(term: &str, why: &str, value: &str) -> String {
    format!("Receivers ignore your whole SPF record because of {term}: {why}. Change it to: {value}")
}

pub(super) fn number(count: usize) -> String {
    match count {
        2 => "two".to_owned(),
        3 => "three".to_owned(),
        other => other.to_string(),
    }
}
