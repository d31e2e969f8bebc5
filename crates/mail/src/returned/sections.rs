//! Finds which recipients a notice mentions, and its text about each.

use std::collections::{HashMap, HashSet};

use super::parts::Parts;
use super::{RECIPIENTS_MAX, address};

/// The notice's text about one recipient.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) recipient: String,
    pub(super) text: String,
}

/// Sections by recipient, so that a thousand recipients are found in linear time.
#[derive(Debug)]
pub(super) struct SectionIndex<'s> {
    sections: &'s [Section],
    /// Positions in `sections`, by recipient in ASCII lower case.
    positions: HashMap<String, usize>,
}

impl<'s> SectionIndex<'s> {
    pub(super) fn of(sections: &'s [Section]) -> Self {
        let recipients = sections.iter().map(|section| section.recipient.to_ascii_lowercase());
        let positions = recipients.zip(0..).collect();
        Self { sections, positions }
    }

    /// The first section about one of these recipients.
    pub(super) fn find(&self, recipients: impl Iterator<Item = String>) -> Option<&'s Section> {
        let positions = recipients.filter_map(|one| self.positions.get(&one.to_ascii_lowercase()));
        self.sections.get(*positions.min()?)
    }
}

/// Longest section: there may be a thousand of them, and a reply is cut to a shorter length anyway.
const SECTION_BYTES_MAX: usize = 8 << 10;

/// The texts about known recipients; recipients without a text are omitted.
pub(super) fn sections_of(parts: &Parts, recipients: impl Iterator<Item = String>) -> Vec<Section> {
    let recipients: HashSet<String> = recipients.take(RECIPIENTS_MAX).map(|one| one.to_lowercase()).collect();
    split(&parts.notice, |address| recipients.contains(&address.to_lowercase()))
}

/// The recipients that a notice mentions, and its text about each.
pub(super) fn find_sections(parts: &Parts) -> Vec<Section> {
    let named = parts.headers.addresses(&["x-failed-recipients"]);
    if !named.is_empty() {
        let sections = sections_of(parts, named.iter().cloned());
        let index = SectionIndex::of(&sections);
        return named
            .into_iter()
            .take(RECIPIENTS_MAX)
            .map(|recipient| named_section(recipient, &index))
            .collect();
    }
    let is_recipient = recipient_test(parts);
    let sections = split(&parts.notice, &is_recipient);
    if !sections.is_empty() {
        return sections;
    }
    let is_sender_line = |line: &&str| {
        let line = line.trim_start().to_lowercase();
        line.starts_with("from:") || line.contains("mail from:")
    };
    let lines = parts.notice.lines().filter(|line| !is_sender_line(line));
    let inside = lines.flat_map(address::find_all).find(|address| is_recipient(address));
    inside.map(|found| Section { recipient: found.to_owned(), text: String::new() }).into_iter().collect()
}

/// Whether a notice names recipients, in the header `X-Failed-Recipients` or at the beginning of lines, as in a list of
/// failures.
pub(super) fn names_recipients(parts: &Parts) -> bool {
    parts.headers.has("x-failed-recipients") || !split(&parts.notice, recipient_test(parts)).is_empty()
}

/// A test whether an address in a notice may be a recipient: neither a mail system's nor one of `other_addresses`.
fn recipient_test(parts: &Parts) -> impl Fn(&str) -> bool {
    let others = other_addresses(parts);
    move |address| !address::is_daemon(address) && !others.contains(&address.to_lowercase())
}

/// The section of a recipient; its text is empty if the notice has no text about the recipient.
fn named_section(recipient: String, sections: &SectionIndex<'_>) -> Section {
    let section = sections.find(std::iter::once(recipient.clone()));
    Section { text: section.map(|section| section.text.clone()).unwrap_or_default(), recipient }
}

/// Addresses that a notice may mention although they are not recipients: the author of the original, and the author and
/// recipients of the notice.
fn other_addresses(parts: &Parts) -> HashSet<String> {
    let mut found = parts.original.addresses(&["from", "sender", "reply-to", "return-path", "errors-to"]);
    found.extend(parts.headers.addresses(&["to", "from", "delivered-to", "reply-to"]));
    found.iter().map(|address| address.to_lowercase()).collect()
}

/// Splits a notice where a line begins with the address of a recipient. A repeated address continues its section.
fn split(notice: &str, is_recipient: impl Fn(&str) -> bool) -> Vec<Section> {
    let mut sections = Sections::default();
    // In a transcript the refusal comes before the line that names the recipient.
    let mut transcript = String::new();
    for line in notice.lines() {
        // A quoted reply may begin with any address.
        let named = address::split_leading(line).filter(|_| !line.starts_with("<<< "));
        match named.filter(|(address, _)| is_recipient(address)) {
            Some((address, rest)) => {
                let is_new = sections.open(address);
                let has_code = line.starts_with(['4', '5']);
                if is_new && has_code {
                    // The transcript and this line are all that is known about this recipient.
                    sections.add(&transcript);
                    sections.add(line);
                    sections.current = None;
                } else if has_code {
                    sections.add(line);
                } else {
                    sections.add(rest.trim_start_matches(['>', '"', '\'', ')', ']', ':', ' ']));
                }
                transcript.clear();
            }
            None => sections.add(line),
        }
        if line.starts_with(">>> ") || line.starts_with("<<< ") {
            transcript.push_str(line);
            transcript.push('\n');
        } else if line.to_lowercase().contains("while talking to") {
            transcript.clear();
        }
        if sections.is_full {
            break;
        }
    }
    sections.list
}

#[derive(Debug, Default)]
struct Sections {
    list: Vec<Section>,
    /// Positions in the list, by address in lower case.
    indexes: HashMap<String, usize>,
    current: Option<usize>,
    /// Whether there are more recipients than the limit.
    is_full: bool,
}

impl Sections {
    /// Opens the section of an address, or continues it; returns whether it is new.
    fn open(&mut self, address: &str) -> bool {
        let index = *self.indexes.entry(address.to_lowercase()).or_insert(self.list.len());
        let is_new = index == self.list.len();
        self.is_full |= is_new && index >= RECIPIENTS_MAX;
        if is_new && !self.is_full {
            self.list.push(Section { recipient: address.to_owned(), text: String::new() });
        }
        self.current = Some(index);
        is_new
    }

    fn add(&mut self, text: &str) {
        if let Some(section) = self.current.and_then(|at| self.list.get_mut(at))
            && section.text.len() + text.len() < SECTION_BYTES_MAX
        {
            section.text.push_str(text);
            section.text.push('\n');
        }
    }
}
