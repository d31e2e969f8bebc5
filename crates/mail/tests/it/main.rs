//! Tests of the mail crate through its public functions.

#![cfg(test)]

mod classify_doubt;
mod classify_replies;
mod classify_rules;
mod classify_text;
mod dkim_receiver;
mod dkim_signatures;
mod domain_reports;
mod header_checks;
mod injection;
mod python_reads;
mod raw_from;
mod raw_messages;
mod returned_check;
mod returned_kinds;
mod returned_limits;
mod returned_proof;
mod returned_reports;
mod returned_systems;
mod returned_words;
mod rewriting;
mod round_trip;
mod samples;
mod snapshots;
mod views;
