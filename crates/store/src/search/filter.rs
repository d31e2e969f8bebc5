//! Conditions of a search, and the exact test of one message. Every match of the index gets this exact test as well.

use std::collections::BTreeMap;

use postroad_model::{MessageId, MessageToken, Status, Timestamp};

use super::messages::SearchRow;
use crate::Result;

/// All conditions of a search; a message matches if all of them hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// `None` for any status.
    pub statuses: Option<Vec<Status>>,
    /// Accepted at this time or later.
    pub since: Option<Timestamp>,
    /// Accepted before this time.
    pub until: Option<Timestamp>,
    pub terms: Vec<FilterTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterTerm {
    pub matcher: Matcher,
    /// Whether the term matches messages that the matcher does not match.
    pub is_negated: bool,
}

/// One condition. A `Needle` is found anywhere in its field, in any letter case. A `String` must equal the whole value
/// (a domain in any letter case).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matcher {
    To(Needle),
    /// At least one of these texts is in the recipient.
    ToAny(Vec<Needle>),
    From(Needle),
    Subject(Needle),
    /// The text is in the recipient, sender or subject, or is the message's whole token or its Message-ID in angle
    /// brackets.
    Anywhere(Needle),
    Tag(String),
    /// The sender's domain, as in analytics.
    Domain(String),
    Template(String),
    Metadata {
        key: String,
        value: String,
    },
    HasAttachment,
    Id(MessageId),
    /// The Message-ID header without its angle brackets.
    MessageIdHeader(String),
    Token(String),
}

/// A text to find in any letter case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needle {
    original: String,
    lower: String,
}

impl Needle {
    pub fn new(text: &str) -> Self {
        Self { original: text.to_owned(), lower: lower(text) }
    }

    /// The text with its original case.
    pub fn original(&self) -> &str {
        &self.original
    }

    pub(super) fn lower(&self) -> &str {
        &self.lower
    }

    /// The text, if it can be a message token. A text of a token's length that has only lower-case letters counts as a
    /// word, not as a token.
    pub(super) fn token(&self) -> Option<&str> {
        let text = self.original.as_str();
        let is_token = text.len() == MessageToken::LENGTH
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && text.bytes().any(|byte| !byte.is_ascii_lowercase());
        is_token.then_some(text)
    }

    /// The text without its angle brackets, if it is a Message-ID in angle brackets.
    pub(super) fn message_id(&self) -> Option<&str> {
        let bare = self.original.strip_prefix('<')?.strip_suffix('>')?;
        bare.contains('@').then_some(bare)
    }

    fn is_in(&self, text: &str) -> bool {
        lower(text).contains(&self.lower)
    }
}

/// Lowers each letter on its own, so that a substring of a text stays a substring in lower case. (`str::to_lowercase`
/// treats a final sigma differently.)
pub(super) fn lower(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().flat_map(char::to_lowercase).collect()
}

impl SearchFilter {
    pub(super) fn matches(&self, row: &SearchRow) -> Result<bool> {
        if self.statuses.as_ref().is_some_and(|statuses| !statuses.contains(&row.status))
            || self.since.is_some_and(|since| row.created_at < since)
            || self.until.is_some_and(|until| row.created_at >= until)
        {
            return Ok(false);
        }
        for term in &self.terms {
            if term.matcher.matches(row)? == term.is_negated {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Matcher {
    fn matches(&self, row: &SearchRow) -> Result<bool> {
        Ok(match self {
            Self::To(needle) => needle.is_in(&row.rcpt_to),
            Self::ToAny(needles) => needles.iter().any(|needle| needle.is_in(&row.rcpt_to)),
            Self::From(needle) => needle.is_in(&row.mail_from),
            Self::Subject(needle) => needle.is_in(&row.subject),
            Self::Anywhere(needle) => {
                needle.is_in(&row.subject)
                    || needle.is_in(&row.rcpt_to)
                    || needle.is_in(&row.mail_from)
                    || needle.token() == Some(&row.token)
                    || needle.message_id() == Some(&row.message_id)
            }
            Self::Tag(tag) => row.tag.as_ref() == Some(tag),
            Self::Domain(domain) => row.from_domain.eq_ignore_ascii_case(domain),
            Self::Template(template) => row.options()?.template.as_ref() == Some(template),
            Self::Metadata { key, value } => {
                let metadata: BTreeMap<String, String> = row.metadata()?;
                metadata.get(key) == Some(value)
            }
            Self::HasAttachment => row.options()?.attachment,
            Self::Id(id) => row.id == id.0,
            Self::MessageIdHeader(id) => row.message_id == *id,
            Self::Token(token) => row.token == *token,
        })
    }
}
