//! Plan of a search: whether its candidates are found by tokens, by status, or by scanning the messages.

use postroad_model::{Status, idgen};

use super::filter::{Matcher, Needle, SearchFilter};
use super::tokens::{self, TokenKind};

/// Maximum number of tokens looked up for one text, besides its last token and the tokens of its digits. Looking up
/// more costs more than it saves.
const TOKENS_PER_TEXT: usize = 6;
/// Maximum number of tokens of a whole search.
const TOKENS_MAX: usize = 64;
/// The second in an id can differ from the time of acceptance: ids run ahead of the clock in a busy second, and after
/// the clock was set back. Ids this far outside the searched time are included.
const ID_SLACK: std::time::Duration = std::time::Duration::from_hours(1);

/// How the candidates of a search are found.
#[derive(Debug)]
pub(super) struct Plan {
    /// Every clause must hold. A clause is a list of token sets; it holds if all tokens of one set are present. Empty
    /// if no token helps.
    clauses: Vec<Vec<Vec<i64>>>,
    /// Statuses that the index of rare statuses or the queue can list; `None` if messages of all statuses or sent
    /// messages are wanted.
    pub(super) listed: Option<ListedStatuses>,
    /// Ids that may match: from `first_id` up to `end_id`, excluding `end_id`.
    pub(super) first_id: i64,
    pub(super) end_id: i64,
}

#[derive(Debug, Default)]
pub(super) struct ListedStatuses {
    pub(super) rare: Vec<&'static str>,
    /// Whether queued messages that are not scheduled are wanted.
    pub(super) is_queued: bool,
    pub(super) is_scheduled: bool,
}

impl Plan {
    pub(super) fn of(filter: &SearchFilter) -> Self {
        let mut clauses: Vec<Vec<Vec<i64>>> = filter
            .terms
            .iter()
            .filter(|term| !term.is_negated)
            .map(|term| token_sets(&term.matcher))
            .filter(|sets| !sets.is_empty())
            .collect();
        let mut tokens = 0;
        clauses.retain(|sets| {
            tokens += sets.iter().map(Vec::len).sum::<usize>();
            tokens <= TOKENS_MAX
        });
        let mut first_id = filter.since.map_or(0, |since| idgen::first_id_at(since.minus(ID_SLACK)));
        let mut end_id = filter.until.map_or(i64::MAX, |until| idgen::first_id_at(until.plus(ID_SLACK)));
        for term in filter.terms.iter().filter(|term| !term.is_negated) {
            if let Matcher::Id(id) = term.matcher {
                first_id = first_id.max(id.0);
                end_id = end_id.min(id.0.saturating_add(1));
            }
        }
        let listed = filter.statuses.as_deref().and_then(ListedStatuses::of);
        Self { clauses, listed, first_id, end_id }
    }

    pub(super) fn has_tokens(&self) -> bool {
        !self.clauses.is_empty()
    }

    /// The clauses, all of which must hold; a clause holds if all tokens of one of its sets are present.
    pub(super) fn clauses(&self) -> &[Vec<Vec<i64>>] {
        &self.clauses
    }
}

impl ListedStatuses {
    fn of(statuses: &[Status]) -> Option<Self> {
        let mut listed = Self::default();
        for status in statuses {
            match status {
                Status::Sent => return None,
                Status::Pending | Status::SoftFail => listed.is_queued = true,
                Status::Scheduled => listed.is_scheduled = true,
                // A status that is given twice is listed once.
                rare if listed.rare.contains(&rare.as_str()) => {}
                rare => listed.rare.push(rare.as_str()),
            }
        }
        Some(listed)
    }
}

/// Sets of tokens; every match has all tokens of at least one set. Empty if tokens cannot exclude anything.
fn token_sets(matcher: &Matcher) -> Vec<Vec<i64>> {
    let value = |kind, value: &str| vec![vec![tokens::of_value(kind, value)]];
    let text = |kind, needle: &Needle| Vec::from_iter(choose_tokens(kind, needle));
    match matcher {
        Matcher::To(needle) => text(TokenKind::To, needle),
        // A needle without tokens may be in any message, so the other needles exclude nothing.
        Matcher::ToAny(needles) => {
            let sets = needles.iter().map(|needle| choose_tokens(TokenKind::To, needle));
            sets.collect::<Option<Vec<_>>>().unwrap_or_default()
        }
        Matcher::From(needle) => text(TokenKind::From, needle),
        Matcher::Subject(needle) => text(TokenKind::Subject, needle),
        Matcher::Anywhere(needle) => [TokenKind::Subject, TokenKind::To, TokenKind::From]
            .into_iter()
            .filter_map(|kind| choose_tokens(kind, needle))
            .chain(needle.token().map(|token| vec![tokens::of_value(TokenKind::MessageToken, token)]))
            .chain(needle.message_id().map(|id| vec![tokens::of_value(TokenKind::MessageId, id)]))
            .collect(),
        Matcher::Tag(tag) => value(TokenKind::Tag, tag),
        Matcher::Domain(domain) => value(TokenKind::Domain, &domain.to_ascii_lowercase()),
        Matcher::Template(template) => value(TokenKind::Template, template),
        Matcher::Metadata { key, value } => vec![vec![tokens::of_metadata(key, value)]],
        Matcher::HasAttachment => vec![vec![tokens::of_attachment()]],
        // `Plan::first_id` and `end_id` select this message.
        Matcher::Id(_) => Vec::new(),
        Matcher::MessageIdHeader(id) => value(TokenKind::MessageId, id),
        Matcher::Token(token) => value(TokenKind::MessageToken, token),
    }
}

/// Some tokens spread evenly over a text, and tokens of its digits; `None` if the text has fewer than three characters.
fn choose_tokens(kind: TokenKind, needle: &Needle) -> Option<Vec<i64>> {
    let all: Vec<i64> = tokens::of_text(kind, needle.lower()).collect();
    let step = all.len().div_ceil(TOKENS_PER_TEXT).max(1);
    let mut chosen: Vec<i64> = all.iter().step_by(step).chain(all.last()).copied().collect();
    let digits: Vec<i64> = tokens::of_digits(kind, needle.lower()).collect();
    chosen.extend(digits.first().into_iter().chain(digits.last()));
    chosen.sort_unstable();
    chosen.dedup();
    (!chosen.is_empty()).then_some(chosen)
}
