//! Paged lists: `limit` and `cursor` in, `flags.pagination` out. A cursor is opaque to clients; it encodes the
//! position of the last entry of a page.

use crate::documented::ToSchema;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use crate::fields::{Fields, Findings};
use crate::json::Json;

pub(crate) const LIMIT_DEFAULT: usize = 50;
pub(crate) const LIMIT_MAX: usize = 500;
const CURSOR_BYTES_MAX: usize = 1_000;

/// Position in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Pagination {
    /// `cursor` for the next page; null on the last page.
    next_cursor: Option<String>,
    has_more: bool,
    limit: usize,
}

impl Pagination {
    /// `next` is the position of this page's last entry, if more entries follow.
    pub(crate) fn new(limit: usize, next: Option<String>) -> Self {
        let next_cursor = next.map(|text| URL_SAFE_NO_PAD.encode(text));
        Self { has_more: next_cursor.is_some(), next_cursor, limit }
    }

    /// Pagination of an endless stream: always has a cursor, even if no more entries exist yet.
    pub(crate) fn of_stream(limit: usize, next: &str, has_more: bool) -> Self {
        Self { next_cursor: Some(URL_SAFE_NO_PAD.encode(next)), has_more, limit }
    }
}

/// Takes `limit` out of a request.
pub(crate) fn read_limit(
    fields: &mut Fields<'_>,
    findings: &mut Findings,
    default: usize,
    max: usize,
) -> usize {
    match fields.take("limit", findings) {
        None => default,
        Some(Json::Number(number)) if !number.is_float() => match number.as_u64() {
            Some(limit) if (1..=max as u64).contains(&limit) => limit as usize,
            _ => {
                findings.problem("/limit", format!("`limit` should be from 1 to {max}"));
                default
            }
        },
        Some(other) => {
            findings.wrong_type("/limit", "Integer", other.type_name());
            default
        }
    }
}

/// Takes `cursor` out of a request and parses its decoded text with `parse`.
pub(crate) fn read_cursor<T>(
    fields: &mut Fields<'_>,
    findings: &mut Findings,
    parse: impl FnOnce(String) -> Option<T>,
) -> Option<T> {
    let text = fields.text("cursor", findings)?;
    let cursor = decode_cursor(&text).and_then(parse);
    if cursor.is_none() {
        findings.problem("/cursor", "`cursor` is not the `next_cursor` of an earlier page of this list");
    }
    cursor
}

/// Decoded text of a cursor; `None` if `text` is no cursor.
pub(crate) fn decode_cursor(text: &str) -> Option<String> {
    let bytes = if text.len() > CURSOR_BYTES_MAX { None } else { URL_SAFE_NO_PAD.decode(text).ok() };
    bytes.and_then(|bytes| String::from_utf8(bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_object;

    fn read(request: &str) -> (usize, Option<String>, Vec<String>) {
        let mut fields = Fields::of_request(parse_object(request.as_bytes()).unwrap());
        let mut findings = Findings::default();
        let limit = read_limit(&mut fields, &mut findings, LIMIT_DEFAULT, LIMIT_MAX);
        let cursor = read_cursor(&mut fields, &mut findings, Some);
        (limit, cursor, findings.problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn a_cursor_leads_to_the_next_page() {
        let page = Pagination::new(7, Some("12:ü@example.com".into()));
        let request = format!(r#"{{"limit": 7, "cursor": "{}"}}"#, page.next_cursor.unwrap());
        assert_eq!(read(&request), (7, Some("12:ü@example.com".into()), vec![]));
        assert!(!Pagination::new(7, None).has_more);
        assert_eq!(read("{}"), (50, None, vec![]));
    }

    #[test]
    fn invalid_limits_and_cursors_are_refused() {
        for limit in ["0", "-1", "501", "18446744073709551615"] {
            assert_eq!(read(&format!(r#"{{"limit": {limit}}}"#)).2, ["`limit` should be from 1 to 500"]);
        }
        for (limit, found) in [("1.5", "Float"), ("\"5\"", "String")] {
            let message = format!("`limit` should be a `Integer` but is a `{found}`");
            assert_eq!(read(&format!(r#"{{"limit": {limit}}}"#)).2, [message]);
        }
        for cursor in ["!", "_w", &"A".repeat(2_000)] {
            let problems = read(&format!(r#"{{"cursor": "{cursor}"}}"#)).2;
            assert_eq!(problems, ["`cursor` is not the `next_cursor` of an earlier page of this list"]);
        }
    }
}
