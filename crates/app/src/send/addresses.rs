//! Recipient lists: parses every entry, and keeps each mailbox once.

use std::collections::HashSet;

use postroad_model::{EmailAddress, Mailbox};

use super::draft::ListEntry;
use crate::FieldProblem;

/// Parses a list; invalid addresses are added to `problems`.
pub(super) fn parse_list(entries: &[ListEntry<'_>], problems: &mut Vec<FieldProblem>) -> Vec<Mailbox> {
    entries.iter().filter_map(|entry| parse_one(&entry.pointer, &entry.text, problems)).collect()
}

pub(super) fn parse_one(pointer: &str, text: &str, problems: &mut Vec<FieldProblem>) -> Option<Mailbox> {
    match Mailbox::parse(text) {
        Ok(mailbox) => Some(mailbox),
        Err(error) => {
            let field = pointer.trim_start_matches('/');
            problems.push(FieldProblem::new(
                pointer,
                format!("`{field}` is not a valid e-mail address: {error}"),
            ));
            None
        }
    }
}

/// The addresses in order, each mailbox once.
pub(super) fn unique<'a>(addresses: impl Iterator<Item = &'a EmailAddress>) -> Vec<EmailAddress> {
    let mut seen = HashSet::new();
    addresses.filter(|address| seen.insert(address.mailbox_key())).cloned().collect()
}
