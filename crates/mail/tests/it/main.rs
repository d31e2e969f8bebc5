//! Tests of the mail crate through its public functions.

#![cfg(test)]

mod classify_hard;
mod classify_replies;
mod classify_rules;
mod classify_text;
mod dkim_receiver;
mod dkim_signatures;
mod domain_reports;
mod header_checks;
mod injection;
mod python_parser;
mod raw_from;
mod raw_messages;
mod returned_check;
mod returned_kinds;
mod returned_limits;
mod returned_precedence;
mod returned_reports;
mod returned_systems;
mod returned_texts;
mod rewriting;
mod round_trip;
mod samples;
mod snapshots;
mod views;
