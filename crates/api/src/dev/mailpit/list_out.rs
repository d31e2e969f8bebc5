//! Lists of messages in Mailpit's JSON, and their query parameters.

use postroad_app::NamedAddress;
use serde_json::{Value, json};

use super::group::Group;
use super::inbox_state::InboxState;
use super::parsed_message::ParsedMessage;
use crate::dev::problem::Problem;

const LIMIT_DEFAULT: usize = 50;
/// Mailpit has no limit; larger values are reduced to this.
const LIMIT_MAX: usize = 1_000;
const SNIPPET_CHARS_MAX: usize = 250;

/// `start`, `limit` and, in searches, `query`. Other parameters are ignored, as Mailpit does.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListQuery {
    pub(super) start: usize,
    pub(super) limit: usize,
    pub(super) query: String,
}

impl ListQuery {
    pub(super) fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut parsed = Self { start: 0, limit: LIMIT_DEFAULT, query: String::new() };
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let number = || {
                value
                    .parse()
                    .map_err(|_| Problem::BadQuery(format!("`{name}` must be a whole number, 0 or more")))
            };
            match name.as_ref() {
                "start" => parsed.start = number()?,
                "limit" => parsed.limit = number()?,
                "query" => parsed.query = value.into_owned(),
                _ => {}
            }
        }
        parsed.limit = parsed.limit.min(LIMIT_MAX);
        Ok(parsed)
    }
}

/// JSON of a page of `found`, with the counts of `all`.
pub(super) fn list_json(all: &[Group], found: &[Group], page: &ListQuery, inbox_state: &InboxState) -> Value {
    let messages: Vec<Value> =
        found.iter().skip(page.start).take(page.limit).map(|group| entry(group, inbox_state)).collect();
    json!({
        "total": all.len(),
        "unread": inbox_state.count_unread(all),
        "count": messages.len(),
        "messages_count": found.len(),
        "messages_unread": inbox_state.count_unread(found),
        "start": page.start,
        "tags": [],
        "messages": messages,
    })
}

fn entry(group: &Group, inbox_state: &InboxState) -> Value {
    let parsed = ParsedMessage::new(group);
    let first = group.first();
    let files = parsed.view().attachments.iter().filter(|file| file.content_id.is_none()).count();
    let people = parsed.correspondents();
    json!({
        "ID": group.id().to_string(),
        "MessageID": first.message_id,
        "Read": inbox_state.is_read(group),
        "From": people.from.as_ref().map(address),
        "To": addresses(&people.to),
        "Cc": addresses(&people.cc),
        "Bcc": addresses(&parsed.bcc()),
        "ReplyTo": addresses(&people.reply_to),
        "Subject": first.subject,
        "Created": first.received_at.to_rfc3339_millis(),
        "Username": "",
        "Tags": [],
        "Size": first.raw.len(),
        "Attachments": files,
        "Snippet": snippet(parsed.text()),
    })
}

pub(super) fn address(named: &NamedAddress) -> Value {
    json!({ "Name": named.name, "Address": named.address })
}

pub(super) fn addresses(named: &[NamedAddress]) -> Value {
    named.iter().map(address).collect()
}

fn snippet(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        // Enough bytes to know that the snippet must be shortened.
        if words.len() > 8 * SNIPPET_CHARS_MAX {
            break;
        }
    }
    match words.char_indices().nth(SNIPPET_CHARS_MAX) {
        Some((at, _)) => format!("{}...", &words[..at]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_parsed_and_their_limit_is_bounded() {
        let parse = |query| ListQuery::parse(Some(query)).unwrap();
        let expected = ListQuery { start: 5, limit: 1_000, query: "to:a@b c".to_owned() };
        assert_eq!(parse("start=5&limit=99999&query=to%3Aa%40b+c&tz=UTC"), expected);
        assert_eq!(parse("").limit, 50);
        assert!(ListQuery::parse(Some("start=-1")).is_err());
    }

    #[test]
    fn a_snippet_has_at_most_250_characters() {
        assert_eq!(snippet(" a \r\n\tb "), "a b");
        assert_eq!(snippet(&"ü".repeat(300)), format!("{}...", "ü".repeat(250)));
    }
}
