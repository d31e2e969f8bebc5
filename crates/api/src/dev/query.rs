//! Query parameters of the dev inbox. An unknown parameter is an error: if a misspelt `subject` were ignored, every
//! message would match.

use std::time::Duration;

use postroad_delivery::MessageMatcher;
use postroad_model::{EmailAddress, Timestamp};

use super::problem::Problem;

const LIMIT_DEFAULT: usize = 500;
/// Larger values of `limit` are reduced to this, the capacity of the inbox.
const LIMIT_MAX: usize = 10_000;
const WAIT_DEFAULT: Duration = Duration::from_secs(30);
const WAIT_MAX: Duration = Duration::from_mins(2);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListQuery {
    pub(super) limit: usize,
}

impl ListQuery {
    pub(super) fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut limit = LIMIT_DEFAULT;
        for (name, value) in pairs(query) {
            match name.as_str() {
                "limit" => {
                    limit =
                        value.parse().map_err(|_| bad_query("`limit` must be a whole number, 0 or more"))?;
                }
                _ => return Err(unknown_parameter(&name, "limit")),
            }
        }
        Ok(Self { limit: limit.min(LIMIT_MAX) })
    }
}

/// What a call extracts from a message's text and adds to its JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RequestedExtracts {
    pub(super) links: bool,
    pub(super) codes: bool,
}

impl RequestedExtracts {
    /// Parses the query of a call that shows one message.
    pub(super) fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut extracts = Self::default();
        for (name, value) in pairs(query) {
            match name.as_str() {
                "extract" => extracts = Self::parse_value(&value)?,
                _ => return Err(unknown_parameter(&name, "extract")),
            }
        }
        Ok(extracts)
    }

    fn parse_value(value: &str) -> Result<Self, Problem> {
        let mut extracts = Self::default();
        for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part {
                "links" => extracts.links = true,
                "codes" => extracts.codes = true,
                _ => return Err(bad_query("`extract` must be `links`, `codes` or `links,codes`")),
            }
        }
        Ok(extracts)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct WaitQuery {
    pub(super) matcher: MessageMatcher,
    pub(super) extracts: RequestedExtracts,
    pub(super) time_max: Duration,
}

impl WaitQuery {
    pub(super) fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut matcher = MessageMatcher::default();
        let mut extracts = RequestedExtracts::default();
        let mut time_max = WAIT_DEFAULT;
        for (name, value) in pairs(query) {
            match name.as_str() {
                // `to=` means the same as no `to`.
                "to" if value.is_empty() => matcher.to = None,
                "to" => matcher.to = Some(parse_address(value)?),
                "subject" => matcher.subject = Some(value),
                "text" => matcher.text = Some(value),
                "since" if value.is_empty() => matcher.since = None,
                "since" => matcher.since = Some(parse_time(&value)?),
                "extract" => extracts = RequestedExtracts::parse_value(&value)?,
                "timeout" => time_max = parse_seconds(&value)?,
                _ => return Err(unknown_parameter(&name, "to, subject, text, since, extract, timeout")),
            }
        }
        Ok(Self { matcher, extracts, time_max: time_max.min(WAIT_MAX) })
    }
}

fn parse_seconds(text: &str) -> Result<Duration, Problem> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse().ok();
    match seconds.filter(|seconds: &f64| *seconds >= 0.0) {
        Some(seconds) => Ok(Duration::try_from_secs_f64(seconds).unwrap_or(WAIT_MAX)),
        None => Err(bad_query("`timeout` must be a number of seconds, 0 or more")),
    }
}

fn parse_time(text: &str) -> Result<Timestamp, Problem> {
    // A `+` typed without escaping is decoded as a space.
    Timestamp::parse_rfc3339(&text.replace(' ', "+"))
        .ok_or_else(|| bad_query("`since` must be a time such as 2026-11-16T12:00:00Z"))
}

/// Reads `user+tag@example.com` typed without escaping, which form decoding turns into `user tag@example.com`.
/// Only a quoted address can contain a space.
fn parse_address(value: String) -> Result<EmailAddress, Problem> {
    let text = if value.contains('"') { value } else { value.replace(' ', "+") };
    EmailAddress::parse(&text).map_err(|problem| Problem::BadQuery(format!("`to`: {problem}")))
}

fn pairs(query: Option<&str>) -> impl Iterator<Item = (String, String)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned()
}

fn bad_query(text: &str) -> Problem {
    Problem::BadQuery(text.to_owned())
}

fn unknown_parameter(name: &str, known: &str) -> Problem {
    Problem::BadQuery(format!("Unknown parameter `{name}`; known parameters: {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(query: &str) -> (Option<String>, Option<String>, Duration) {
        let query = WaitQuery::parse(Some(query)).unwrap();
        (query.matcher.to.map(String::from), query.matcher.subject, query.time_max)
    }

    #[test]
    fn list_and_wait_queries_are_parsed() {
        assert_eq!(ListQuery::parse(None).unwrap().limit, 500);
        assert_eq!(ListQuery::parse(Some("limit=3")).unwrap().limit, 3);
        assert_eq!(ListQuery::parse(Some("limit=999999")).unwrap().limit, 10_000);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(wait(""), (None, None, WAIT_DEFAULT));
        assert_eq!(wait("to=&timeout=0"), (None, None, Duration::ZERO));
        assert_eq!(wait("timeout=1.5s").2, Duration::from_millis(1_500));
        assert_eq!(wait("timeout=99999999999").2, WAIT_MAX);
        for to in ["a+b@example.com", "a%2Bb@example.com", "a%2Bb%40example.com"] {
            assert_eq!(wait(&format!("to={to}&subject=one+two%21")).0, text("a+b@example.com"));
        }
        assert_eq!(wait("subject=one+two%21").1, text("one two!"));
        assert_eq!(wait("to=%22a+b%22@example.com").0, text("\"a b\"@example.com"));
    }

    #[test]
    fn wait_conditions_and_extracts_are_parsed() {
        let query =
            WaitQuery::parse(Some("text=a+code&since=2026-11-16T12:00:00%2B01:00&extract=codes,links"));
        let WaitQuery { matcher, extracts, .. } = query.unwrap();
        assert_eq!(matcher.text.as_deref(), Some("a code"));
        assert_eq!(matcher.since, Timestamp::parse_rfc3339("2026-11-16T11:00:00Z"));
        assert_eq!(extracts, RequestedExtracts { links: true, codes: true });
        let query = WaitQuery::parse(Some("since=&extract=")).unwrap();
        assert_eq!(
            (query.matcher, query.extracts),
            (MessageMatcher::default(), RequestedExtracts::default())
        );
        assert_eq!(
            RequestedExtracts::parse(Some("extract=links")).unwrap(),
            RequestedExtracts { links: true, codes: false }
        );
        assert!(RequestedExtracts::parse(Some("limit=1")).is_err());
    }

    #[test]
    fn invalid_queries_are_refused() {
        for query in [
            "timeout=soon",
            "timeout=-1",
            "timeout=NaN",
            "timeout=",
            "sub=x",
            "to=a",
            "to=a@example.com&To=x",
            "since=yesterday",
            "extract=images",
        ] {
            assert!(WaitQuery::parse(Some(query)).is_err(), "{query}");
        }
        for query in ["limit=x", "limit=-1", "limit=", "to=a"] {
            assert!(ListQuery::parse(Some(query)).is_err(), "{query}");
        }
    }
}
