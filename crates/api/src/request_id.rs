//! Id of a request in answers and logs: the client's own if it is safe to log, else a generated one.

use std::sync::Arc;

use axum::http::HeaderMap;
use uuid::Uuid;

pub(crate) const X_REQUEST_ID: &str = "x-request-id";
const CHARS_MAX: usize = 128;

pub(crate) fn of(headers: &HeaderMap, own_id: Uuid) -> Arc<str> {
    let client_id = headers.get(X_REQUEST_ID).and_then(|value| value.to_str().ok());
    match client_id.filter(|id| is_safe_to_log(id)) {
        Some(id) => id.into(),
        None => own_id.to_string().into(),
    }
}

fn is_safe_to_log(id: &str) -> bool {
    (1..=CHARS_MAX).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_header(value: &str) -> Arc<str> {
        let mut headers = HeaderMap::new();
        headers.insert(X_REQUEST_ID, value.parse().unwrap());
        of(&headers, Uuid::nil())
    }

    #[test]
    fn a_safe_id_is_kept_and_others_are_replaced() {
        let longest = "a".repeat(128);
        for good in ["1", "a.B_c-9", &longest] {
            assert_eq!(&*of_header(good), good);
        }
        let too_long = "a".repeat(129);
        for bad in ["", "a b", "a\"b", "ü", "{x}", &too_long] {
            let id = of_header(bad);
            assert_eq!(&*id, Uuid::nil().to_string(), "{bad:?}");
        }
        assert_eq!(&*of(&HeaderMap::new(), Uuid::nil()), Uuid::nil().to_string());
    }
}
