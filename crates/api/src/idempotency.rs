//! Idempotency key, and the fingerprint of the request that the key belongs to.

use std::borrow::Cow;

use aws_lc_rs::digest::{Context, SHA256};
use axum::http::HeaderMap;
use postroad_app::send::{IdempotencyRequest, is_idempotency_key};
use postroad_model::Limits;

use crate::fields::Findings;
use crate::json::{Json, Object};

pub(crate) const FIELD: &str = "idempotency_key";
const HEADER: &str = "idempotency-key";
const POINTER: &str = "/idempotency_key";

/// Hash of a request that creates something, if the request has an idempotency key. The same request has the same
/// hash, however its JSON is written. The key itself is not hashed.
pub(crate) fn fingerprint(headers: &HeaderMap, endpoint: &str, request: &Object<'_>) -> Option<[u8; 32]> {
    // Like a send outside test mode.
    fingerprint_of_send(headers, endpoint, false, request)
}

/// Like `fingerprint`, for a request that sends mail. In test mode the hash is different.
pub(crate) fn fingerprint_of_send(
    headers: &HeaderMap,
    endpoint: &str,
    is_test: bool,
    request: &Object<'_>,
) -> Option<[u8; 32]> {
    if !headers.contains_key(HEADER) && !request.iter().any(|(name, _)| name == FIELD) {
        return None;
    }
    let mut hash = Context::new(&SHA256);
    add_text(&mut hash, b'e', endpoint);
    hash.update(&[u8::from(is_test)]);
    add_object(&mut hash, request.iter().filter(|(name, _)| name != FIELD));
    Some(hash.finish().as_ref().try_into().expect("SHA-256 gives 32 bytes"))
}

/// Reads the key from header or field; if both are present, they must agree.
pub(crate) fn read_key(
    headers: &HeaderMap,
    field: Option<Cow<'_, str>>,
    fingerprint: Option<[u8; 32]>,
    findings: &mut Findings,
) -> Option<IdempotencyRequest> {
    let header = headers.get(HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
    for (source, key) in [("The header Idempotency-Key", &header), ("`idempotency_key`", &field)] {
        if key.as_deref().is_some_and(|key| !is_idempotency_key(key)) {
            let max = Limits::IDEMPOTENCY_KEY_CHARS_MAX;
            findings.problem(POINTER, format!("{source} must be 1 to {max} printable characters"));
            return None;
        }
    }
    if header.is_some() && field.is_some() && header != field {
        findings.problem(POINTER, "The header Idempotency-Key and `idempotency_key` are different");
        return None;
    }
    let key = header.or(field)?.into_owned();
    Some(IdempotencyRequest { key, fingerprint: fingerprint? })
}

/// Adds a value to the hash. Each value begins with its type, and with its length if the length can vary, so that
/// different requests never produce the same bytes.
fn add_value(hash: &mut Context, json: &Json<'_>) {
    match json {
        Json::Null => hash.update(b"n"),
        Json::Bool(value) => hash.update(if *value { b"t" } else { b"f" }),
        Json::Number(number) => add_text(hash, b'd', &number.canonical()),
        Json::Text(text) => add_text(hash, b's', text),
        Json::Array(values) => {
            add_head(hash, b'a', values.len());
            for value in values {
                add_value(hash, value);
            }
        }
        Json::Object(entries) => add_object(hash, entries.iter()),
        Json::UnparsedObject(object) => add_object(hash, object.parse().iter()),
    }
}

fn add_object<'j, 'a: 'j>(hash: &mut Context, entries: impl Iterator<Item = &'j (Cow<'a, str>, Json<'a>)>) {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    add_head(hash, b'o', entries.len());
    for (name, value) in entries {
        add_text(hash, b's', name);
        add_value(hash, value);
    }
}

fn add_text(hash: &mut Context, kind: u8, text: &str) {
    add_head(hash, kind, text.len());
    hash.update(text.as_bytes());
}

fn add_head(hash: &mut Context, kind: u8, length: usize) {
    hash.update(&[kind]);
    hash.update(&(length as u64).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_object;

    fn headers_with_key() -> HeaderMap {
        HeaderMap::from_iter([(HEADER.parse().unwrap(), "k".parse().unwrap())])
    }

    fn fingerprint_of(text: &str) -> [u8; 32] {
        fingerprint(&headers_with_key(), "send/message", &parse_object(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn the_same_request_written_differently_has_one_fingerprint() {
        let one = fingerprint_of(r#"{"to": ["a"], "headers": {"x": 1, "y": "\u00fc"}}"#);
        assert_eq!(one, fingerprint_of(r#"{"headers":{"y":"ü","x":1},"to":["a"],"idempotency_key":"k"}"#));
        let listed = fingerprint_of(r#"{"attachments": [{"name": "\u00fc", "data": 1, "data": "\/"}]}"#);
        assert_eq!(listed, fingerprint_of(r#"{"attachments":[{"data":"/","name":"ü"}]}"#));
    }

    #[test]
    fn different_requests_have_different_fingerprints() {
        let texts = [
            r"{}",
            r#"{"a": "bc"}"#,
            r#"{"ab": "c"}"#,
            r#"{"a": ["bc"]}"#,
            r#"{"a": ["b", "c"]}"#,
            r#"{"a": [["b"], "c"]}"#,
            r#"{"a": {"b": "c"}}"#,
            r#"{"a": [{"b": "c"}]}"#,
            r#"{"a": {"idempotency_key": "c"}}"#,
            r#"{"a": 1}"#,
            r#"{"a": "1"}"#,
            r#"{"a": true}"#,
            r#"{"a": null}"#,
        ];
        let mut fingerprints: Vec<_> = texts.iter().map(|text| fingerprint_of(text)).collect();
        fingerprints.push(fingerprint(&headers_with_key(), "send/raw", &vec![]).unwrap());
        fingerprints.push(fingerprint_of_send(&headers_with_key(), "send/message", true, &vec![]).unwrap());
        let count = fingerprints.len();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        assert_eq!(fingerprints.len(), count);
    }

    #[test]
    fn without_a_key_nothing_is_hashed() {
        assert_eq!(fingerprint(&HeaderMap::new(), "send/message", &vec![]), None);
    }

    #[test]
    fn keys_are_checked_and_have_to_agree() {
        let outcome = |headers: &HeaderMap, field: Option<&str>| {
            let mut findings = Findings::default();
            let request = read_key(headers, field.map(Cow::from), Some([0; 32]), &mut findings);
            match findings.problems.first() {
                Some(problem) => Err(problem.message.clone()),
                None => Ok(request.map(|request| request.key)),
            }
        };
        let longest = "ü".repeat(256);
        assert_eq!(outcome(&HeaderMap::new(), None), Ok(None));
        assert_eq!(outcome(&HeaderMap::new(), Some(&longest)), Ok(Some(longest.clone())));
        assert_eq!(outcome(&headers_with_key(), Some("k")), Ok(Some("k".into())));
        assert!(outcome(&headers_with_key(), Some("other")).unwrap_err().contains("are different"));
        for bad in ["", "a\nb", &format!("{longest}x")] {
            assert!(outcome(&HeaderMap::new(), Some(bad)).unwrap_err().contains("1 to 256"), "{bad:?}");
        }
    }
}
