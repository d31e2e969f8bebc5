//! Mailpit's search language: words and `"phrases"`, `to:`, `from:`, `subject:` and others; `!` or `-` before a term
//! negates it. Letter case does not matter; a message must match all terms.

use postroad_app::NamedAddress;
use postroad_model::Timestamp;

use super::group::Group;
use super::inbox_state::InboxState;
use super::parsed_message::ParsedMessage;
use crate::dev::problem::Problem;

const QUERY_BYTES_MAX: usize = 4 << 10;
const TERMS_MAX: usize = 50;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Search {
    terms: Vec<Term>,
}

#[derive(Debug, PartialEq, Eq)]
struct Term {
    is_negated: bool,
    condition: Condition,
}

/// Condition of a term; its texts are in lower case.
#[derive(Debug, PartialEq, Eq)]
enum Condition {
    From(String),
    To(String),
    Cc(String),
    Bcc(String),
    ReplyTo(String),
    /// An address in From, To, Cc, Bcc or Reply-To.
    Addressed(String),
    Subject(String),
    MessageId(String),
    /// A text in subject, addresses or body.
    Text(String),
    IsRead,
    HasAttachment,
    HasInline,
    Before(Timestamp),
    After(Timestamp),
    Larger(usize),
    Smaller(usize),
    /// A property that no message in the dev inbox has, such as a tag.
    Never,
}

impl Search {
    pub(super) fn parse(query: &str) -> Result<Self, Problem> {
        if query.trim().is_empty() {
            return Err(Problem::BadQuery("Error: no search query".to_owned()));
        }
        if query.len() > QUERY_BYTES_MAX {
            return Err(Problem::BadQuery("The search query is too long".to_owned()));
        }
        let terms = words(query).into_iter().take(TERMS_MAX).filter_map(|word| Term::parse(&word)).collect();
        Ok(Self { terms })
    }

    pub(super) fn filter(&self, groups: &[Group], inbox_state: &InboxState) -> Vec<Group> {
        let matches = |group: &&Group| {
            let parsed = ParsedMessage::new(group);
            self.terms.iter().all(|term| term.condition.matches(&parsed, inbox_state) != term.is_negated)
        };
        groups.iter().filter(matches).cloned().collect()
    }
}

/// Splits at white space outside quotes and removes the quotes.
fn words(query: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in query.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            space if space.is_whitespace() && !is_quoted => words.push(String::new()),
            other => words.last_mut().expect("never empty").push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

impl Term {
    /// Parses a term; `None` if it is not valid. Mailpit ignores such terms too.
    fn parse(word: &str) -> Option<Self> {
        // A `!` or `-` alone is a text, as in `order - 5`.
        let plain = word.strip_prefix(['!', '-']).filter(|plain| !plain.is_empty()).unwrap_or(word);
        let is_negated = plain.len() < word.len();
        let lower = plain.to_lowercase();
        let (field, value) = lower.split_once(':').unwrap_or(("", &lower));
        let text = value.trim().to_owned();
        let condition = match field {
            "from" => Condition::From(text),
            "to" => Condition::To(text),
            "cc" => Condition::Cc(text),
            "bcc" => Condition::Bcc(text),
            "reply-to" => Condition::ReplyTo(text),
            "addressed" => Condition::Addressed(text),
            "subject" => Condition::Subject(text),
            "message-id" => Condition::MessageId(text.trim_matches(['<', '>']).to_owned()),
            "is" if text == "read" => Condition::IsRead,
            "is" if text == "unread" => {
                return Some(Self { is_negated: !is_negated, condition: Condition::IsRead });
            }
            "tag" | "is" => Condition::Never,
            "has" if text.starts_with("attachment") => Condition::HasAttachment,
            "has" if text.starts_with("inline") => Condition::HasInline,
            "before" => Condition::Before(parse_time(&text)?),
            "after" => Condition::After(parse_time(&text)?),
            "larger" => Condition::Larger(parse_size(&text)?),
            "smaller" => Condition::Smaller(parse_size(&text)?),
            _ => Condition::Text(lower),
        };
        Some(Self { is_negated, condition })
    }
}

/// A date, or a date with a time.
fn parse_time(text: &str) -> Option<Timestamp> {
    let text = text.to_ascii_uppercase();
    Timestamp::parse_rfc3339(&text).or_else(|| Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z")))
}

/// A size in bytes, or with the unit `k` (KiB) or `m` (MiB).
fn parse_size(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

impl Condition {
    fn matches(&self, parsed: &ParsedMessage<'_>, inbox_state: &InboxState) -> bool {
        let (first, people) = (parsed.group.first(), parsed.correspondents());
        let any_contains =
            |named: &[NamedAddress], text: &str| named.iter().any(|one| address_contains(one, text));
        match self {
            Self::From(text) => people.from.as_ref().is_some_and(|from| address_contains(from, text)),
            Self::To(text) => any_contains(&people.to, text),
            Self::Cc(text) => any_contains(&people.cc, text),
            Self::Bcc(text) => any_contains(&parsed.bcc(), text),
            Self::ReplyTo(text) => any_contains(&people.reply_to, text),
            Self::Addressed(text) => is_addressed(parsed, text),
            Self::Subject(text) => first.subject.to_lowercase().contains(text),
            Self::MessageId(text) => first.message_id.to_lowercase().contains(text),
            Self::Text(text) => {
                first.subject.to_lowercase().contains(text)
                    || is_addressed(parsed, text)
                    || parsed.text().to_lowercase().contains(text)
            }
            Self::IsRead => inbox_state.is_read(parsed.group),
            Self::HasAttachment => parsed.view().attachments.iter().any(|file| file.content_id.is_none()),
            Self::HasInline => parsed.view().attachments.iter().any(|file| file.content_id.is_some()),
            Self::Before(time) => first.received_at < *time,
            Self::After(time) => first.received_at >= *time,
            Self::Larger(bytes) => first.raw.len() > *bytes,
            Self::Smaller(bytes) => first.raw.len() < *bytes,
            Self::Never => false,
        }
    }
}

fn is_addressed(parsed: &ParsedMessage<'_>, text: &str) -> bool {
    let people = parsed.correspondents();
    let lists = [&people.to, &people.cc, &people.reply_to];
    people.from.iter().chain(lists.into_iter().flatten()).any(|one| address_contains(one, text))
        || parsed.bcc().iter().any(|one| address_contains(one, text))
}

fn address_contains(one: &NamedAddress, text: &str) -> bool {
    one.address.to_lowercase().contains(text) || one.name.to_lowercase().contains(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(query: &str) -> Vec<(bool, Condition)> {
        let terms = Search::parse(query).unwrap().terms;
        terms.into_iter().map(|term| (term.is_negated, term.condition)).collect()
    }

    #[test]
    fn queries_are_parsed_as_mailpit_parses_them() {
        assert_eq!(
            conditions("To:Ann@Example.net subject:\"Your Order\" !from:bob word"),
            [
                (false, Condition::To("ann@example.net".into())),
                (false, Condition::Subject("your order".into())),
                (true, Condition::From("bob".into())),
                (false, Condition::Text("word".into())),
            ]
        );
        assert_eq!(
            conditions("is:unread \"two words\" larger:2K after:2026-11-16 message-id:<a@b> 12:30 tag:x"),
            [
                (true, Condition::IsRead),
                (false, Condition::Text("two words".into())),
                (false, Condition::Larger(2_048)),
                (false, Condition::After(Timestamp::parse_rfc3339("2026-11-16T00:00:00Z").unwrap())),
                (false, Condition::MessageId("a@b".into())),
                (false, Condition::Text("12:30".into())),
                (false, Condition::Never),
            ]
        );
        assert_eq!(conditions("before:soon larger:x"), []);
        assert_eq!(conditions("-"), [(false, Condition::Text("-".into()))]);
        assert!(Search::parse("  ").is_err());
        assert!(Search::parse(&"x".repeat(5_000)).is_err());
        assert_eq!(Search::parse(&"x ".repeat(1_000)).unwrap().terms.len(), TERMS_MAX);
    }
}
