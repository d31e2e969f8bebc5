//! The query language of searches: words and `key:value` pairs, all of which must hold. A minus negates the word or
//! pair that follows it; quotes keep words together.

use postroad_model::{MessageId, Status, Timestamp};
use postroad_store::{FilterTerm, Matcher, Needle, SearchFilter};

use super::query_problem::QueryProblem;
use super::query_text::{Piece, split};

/// Maximum number of characters of a query, and of each search field beside it (`tag`, `to` …).
pub(super) const QUERY_CHARS_MAX: usize = 1_000;
/// Maximum number of words and pairs of a query.
const TERMS_MAX: usize = 20;
const KNOWN_KEYS: &str =
    "to, from, subject, tag, status, domain, template, metadata, before, after, has, id, token, message_id";

pub(crate) fn parse(text: &str) -> Result<SearchFilter, QueryProblem> {
    if text.chars().count() > QUERY_CHARS_MAX {
        return Err(problem(QUERY_CHARS_MAX + 1, format!("it is longer than {QUERY_CHARS_MAX} characters")));
    }
    let mut filter = SearchFilter::default();
    for (number, piece) in split(text)?.into_iter().enumerate() {
        if number == TERMS_MAX {
            return Err(problem(piece.at, format!("it has more than {TERMS_MAX} words")));
        }
        add(&mut filter, piece)?;
    }
    Ok(filter)
}

fn add(filter: &mut SearchFilter, piece: Piece) -> Result<(), QueryProblem> {
    let Piece { at, key, value_start, value, is_negated } = piece;
    if value.is_empty() {
        let message =
            key.map_or_else(|| "an empty text".to_owned(), |key| format!("`{key}:` without a value"));
        return Err(problem(value_start, message));
    }
    let needle = || Needle::new(&value);
    let matcher = match key.as_deref() {
        None => Matcher::Anywhere(needle()),
        Some("to") => Matcher::To(needle()),
        Some("from") => Matcher::From(needle()),
        Some("subject") => Matcher::Subject(needle()),
        Some("tag") => Matcher::Tag(value),
        Some("domain") => Matcher::Domain(value),
        Some("template") => Matcher::Template(value),
        Some("metadata") => match value.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                Matcher::Metadata { key: key.to_owned(), value: value.to_owned() }
            }
            _ => {
                return Err(problem(
                    value_start,
                    "`metadata:` takes a key and a value, such as `metadata:order=1001`".to_owned(),
                ));
            }
        },
        Some("id") => match value.parse() {
            Ok(id) => Matcher::Id(MessageId(id)),
            Err(_) => return Err(problem(value_start, "`id:` takes the number of a message".to_owned())),
        },
        Some("token") => Matcher::Token(value),
        Some("message_id") => {
            Matcher::MessageIdHeader(value.trim_start_matches('<').trim_end_matches('>').to_owned())
        }
        Some("has") if value == "attachment" => Matcher::HasAttachment,
        Some("has") => return Err(problem(value_start, "`has:` takes `attachment` only".to_owned())),
        Some("status") => {
            let status = parse_status(&value).ok_or_else(|| unknown_status(value_start))?;
            let is_wanted = |other: &Status| (*other == status) != is_negated;
            let before = filter.statuses.take().unwrap_or_else(|| Status::ALL.to_vec());
            filter.statuses = Some(before.into_iter().filter(is_wanted).collect());
            return Ok(());
        }
        Some(key @ ("before" | "after")) => {
            let moment = parse_time(&value).ok_or_else(|| {
                problem(
                    value_start,
                    format!("`{key}:` takes a day (2026-11-15) or a time (2026-11-15T12:00:00Z)"),
                )
            })?;
            // "Not before" a time means at that time or later.
            if (key == "before") == is_negated {
                filter.since = filter.since.max(Some(moment));
            } else {
                filter.until = Some(filter.until.map_or(moment, |until| until.min(moment)));
            }
            return Ok(());
        }
        Some(unknown) => {
            let message = format!(
                "unknown key `{unknown}`; known keys are {KNOWN_KEYS}. Put a text with a colon in quotes"
            );
            return Err(problem(at, message));
        }
    };
    filter.terms.push(FilterTerm { matcher, is_negated });
    Ok(())
}

/// Words of the portal for statuses.
const STATUS_WORDS: [(&str, Status); 4] = [
    ("queued", Status::Pending),
    ("delayed", Status::SoftFail),
    ("delivered", Status::Sent),
    ("failed", Status::HardFail),
];

/// Parses a status in any letter case, also with `_` or `-` inside, or the portal's word for it.
pub fn parse_status(text: &str) -> Option<Status> {
    let plain: String = text.chars().filter(|letter| !matches!(letter, '_' | '-')).collect();
    let mut words = STATUS_WORDS.into_iter().filter(|(word, _)| word.eq_ignore_ascii_case(&plain));
    let by_name = Status::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(&plain));
    by_name.or_else(|| words.next().map(|(_, status)| status))
}

fn unknown_status(at: usize) -> QueryProblem {
    let names = Status::ALL.map(Status::as_str).join(", ");
    let words = STATUS_WORDS.map(|(word, _)| word).join(", ");
    problem(at, format!("unknown status; statuses are {names}; {words} work too"))
}

fn parse_time(text: &str) -> Option<Timestamp> {
    Timestamp::parse_rfc3339(text).or_else(|| Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z")))
}

fn problem(at: usize, message: String) -> QueryProblem {
    QueryProblem { at, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(matcher: Matcher) -> FilterTerm {
        FilterTerm { matcher, is_negated: false }
    }

    #[test]
    fn pairs_words_quotes_and_minus_are_read() {
        let filter =
            parse(r#"to:Ann@Example.com "order 12" -tag:news subject:"a \"b\"" has:attachment x"#).unwrap();
        let anywhere = |text| term(Matcher::Anywhere(Needle::new(text)));
        assert_eq!(
            filter.terms,
            [
                term(Matcher::To(Needle::new("Ann@Example.com"))),
                anywhere("order 12"),
                FilterTerm { matcher: Matcher::Tag("news".into()), is_negated: true },
                term(Matcher::Subject(Needle::new("a \"b\""))),
                term(Matcher::HasAttachment),
                anywhere("x"),
            ]
        );
        let metadata = parse(r#"metadata:"plan=a = b""#).unwrap().terms;
        assert_eq!(metadata, [term(Matcher::Metadata { key: "plan".into(), value: "a = b".into() })]);
        let names = parse("id:12 token:aB3 message_id:<x@y>").unwrap().terms;
        assert_eq!(
            names,
            [
                term(Matcher::Id(MessageId(12))),
                term(Matcher::Token("aB3".into())),
                term(Matcher::MessageIdHeader("x@y".into())),
            ]
        );
        assert_eq!(parse("  ").unwrap(), SearchFilter::default());
        assert_eq!(parse("10:30 -").unwrap().terms, [anywhere("10:30"), anywhere("-")]);
    }

    #[test]
    fn statuses_and_times_narrow_each_other() {
        let filter = parse("status:soft_fail after:2026-11-01 before:2026-11-02T00:00:00Z").unwrap();
        assert_eq!(filter.statuses, Some(vec![Status::SoftFail]));
        assert_eq!(filter.since, Timestamp::parse_rfc3339("2026-11-01T00:00:00Z"));
        assert_eq!(filter.until, Timestamp::parse_rfc3339("2026-11-02T00:00:00Z"));
        assert_eq!(parse("status:held status:sent").unwrap().statuses, Some(vec![]));
        assert_eq!(parse("-status:sent").unwrap().statuses.unwrap().len(), Status::ALL.len() - 1);
        assert_eq!(parse("-before:2026-11-01").unwrap().since, filter.since);
        assert_eq!(parse("-after:2026-11-02").unwrap().until, filter.until);
    }

    #[test]
    fn mistakes_name_their_position() {
        for (query, at, words) in [
            ("a colour:red", 3, "unknown key `colour`; known keys are to, from,"),
            ("https://example.com", 1, "in quotes"),
            ("to:", 4, "`to:` without a value"),
            ("x \"unfinished", 3, "has no end"),
            ("ü \"\"", 3, "an empty text"),
            ("id:x12", 4, "takes the number of a message"),
            ("has:link", 5, "`has:` takes `attachment` only"),
            ("metadata:order", 10, "takes a key and a value"),
            ("metadata:=1001", 10, "takes a key and a value"),
            ("status:lost", 8, "statuses are Pending, Scheduled,"),
            ("after:tomorrow", 7, "takes a day"),
        ] {
            let problem = parse(query).unwrap_err();
            assert_eq!(problem.at, at, "{query}");
            assert!(problem.message.contains(words), "{query}: {}", problem.message);
        }
        assert!(parse(&"x ".repeat(21)).unwrap_err().message.contains("more than 20 words"));
        assert!(parse(&"x".repeat(1_001)).unwrap_err().message.contains("longer than 1000"));
    }
}
