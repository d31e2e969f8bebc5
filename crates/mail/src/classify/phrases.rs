//! Finds the phrases of all rules in one pass over a reply's text.
//!
//! Phrases match whole words, so that `virus` is not found in `antivirusmail.example`; a `*` at the end allows any
//! ending of the last word. Addresses in the text become a single `@`: a recipient named `spam.detected@…` proves
//! nothing.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, BuildError};

/// Index of a phrase in its `PhraseList`, and in the `PhraseFinder` built from that list.
pub(super) type PhraseId = usize;

/// Phrases being gathered, each once.
#[derive(Debug, Default)]
pub(super) struct PhraseList {
    ids: HashMap<String, PhraseId>,
    phrases: Vec<Phrase>,
}

#[derive(Debug)]
struct Phrase {
    needle: String,
    /// Whether a letter or digit may follow the phrase, because the rule writes `*` at its end.
    is_open: bool,
}

#[derive(Debug)]
pub(super) struct PhraseFinder {
    automaton: AhoCorasick,
    phrases: Vec<Phrase>,
}

/// Which phrases a text contains.
#[derive(Debug)]
pub(super) struct FoundPhrases(Vec<bool>);

impl PhraseList {
    /// `None` if the phrase is empty, or `normalise` would change it.
    pub(super) fn add(&mut self, phrase: &str) -> Option<PhraseId> {
        let needle = phrase.strip_suffix('*').unwrap_or(phrase);
        if needle.is_empty() || normalise(needle) != needle {
            return None;
        }
        let next = self.phrases.len();
        let id = *self.ids.entry(phrase.to_owned()).or_insert(next);
        if id == next {
            self.phrases.push(Phrase { needle: needle.to_owned(), is_open: phrase.ends_with('*') });
        }
        Some(id)
    }

    pub(super) fn build(self) -> Result<PhraseFinder, BuildError> {
        let automaton = AhoCorasick::new(self.phrases.iter().map(|phrase| &phrase.needle))?;
        Ok(PhraseFinder { automaton, phrases: self.phrases })
    }
}

impl PhraseFinder {
    pub(super) fn find_in(&self, text: &str) -> FoundPhrases {
        let text = normalise(text);
        let mut found = vec![false; self.phrases.len()];
        for matched in self.automaton.find_overlapping_iter(&text) {
            let id = matched.pattern().as_usize();
            let is_open = self.phrases[id].is_open;
            found[id] |= is_edge(&text, matched.start()) && (is_open || is_edge(&text, matched.end()));
        }
        FoundPhrases(found)
    }
}

impl FoundPhrases {
    pub(super) fn has(&self, phrase: PhraseId) -> bool {
        self.0[phrase]
    }
}

/// Whether a position is not between two ASCII letters or digits. Letters beyond ASCII do not count: Chinese and
/// Japanese have no spaces.
fn is_edge(text: &str, at: usize) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    !(at > 0 && is_word(bytes.get(at - 1)) && is_word(bytes.get(at)))
}

/// Lower case, single spaces, plain apostrophes, addresses as `@`.
fn normalise(text: &str) -> String {
    let text = text.to_lowercase().replace(['\u{2018}', '\u{2019}', '`'], "'");
    let mut without_addresses = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('@') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let local_bytes: usize = before.chars().rev().take_while(|c| is_local(*c)).map(char::len_utf8).sum();
        let domain_end = after.find(|c: char| !is_domain(c)).unwrap_or(after.len());
        without_addresses.push_str(&before[..before.len() - local_bytes]);
        without_addresses.push('@');
        rest = &after[domain_end..];
    }
    without_addresses.push_str(rest);
    let without_addresses = ["<@>", "'@'", "\"@\"", "[@]", "(@)"]
        .into_iter()
        .fold(without_addresses, |text, wrapped| text.replace(wrapped, "@"));
    without_addresses.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a character may be in the local part of an address. Excludes some that RFC 5321 allows: with `/`, `?` and
/// `=` the URL of a help page would be part of an address.
fn is_local(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '%')
}

fn is_domain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-')
}

#[cfg(test)]
mod tests {
    use super::{PhraseList, normalise};

    #[track_caller]
    fn check(phrase: &str, text: &str, is_there: bool) {
        let mut list = PhraseList::default();
        let id = list.add(phrase).expect("a usable phrase");
        assert_eq!(list.build().expect("it builds").find_in(text).has(id), is_there, "{phrase} in {text}");
    }

    #[test]
    fn phrases_are_whole_words_in_any_case() {
        check("user unknown", "<a@example.com>... User  Unknown", true);
        check("virus", "mail from antivirusmail.example", false);
        check("rate limit*", "you were RATE LIMITED", true);
        check("rate limit*", "a separate limit", false);
        check("邮箱已满", "550 用户邮箱已满了", true);
    }

    #[test]
    fn addresses_are_no_evidence() {
        check("virus", "550 <virus@virus.example>: no", false);
        check("mailbox @ does not exist", "Mailbox <jo@example.com> does not exist", true);
        check("openspf.org", "see http://www.openspf.org/why?id=jo@example.com", true);
    }

    #[test]
    fn normalising_twice_changes_nothing() {
        for text in ["User’s \"a@b\" <c@d.e>  X", "@@a@", "\u{130}"] {
            let once = normalise(text);
            assert_eq!(normalise(&once), once);
        }
    }

    #[test]
    fn phrases_that_cannot_be_found_are_refused() {
        for phrase in ["", "*", "User unknown", " padded", "two  spaces", "a@example.com"] {
            assert!(PhraseList::default().add(phrase).is_none(), "{phrase}");
        }
    }
}
