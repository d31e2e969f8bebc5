//! First steps of all calls that send mail: read the fields, the idempotency key and the test mode.

use axum::http::HeaderMap;
use postroad_app::send::{SendContext, TEST_MODE_PROBLEM, read_test_mode};

use crate::endpoint::Call;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

const X_TEST_MODE: &str = "x-test-mode";

/// Parses `text`, the request of the call, with `read`. On failure the answer lists all problems at once.
pub(super) fn prepare<'a, D>(
    call: &Call,
    text: &'a [u8],
    endpoint: &str,
    read: impl FnOnce(&mut Fields<'a>, &mut Findings) -> D,
) -> Result<(SendContext, D), Failure> {
    let request = json::parse_object(text)?;
    let mut findings = Findings::default();
    let test = is_test(&call.headers, &mut findings);
    let fingerprint =
        idempotency::fingerprint_of_send(&call.headers, endpoint, test || call.caller.test, &request);
    let mut fields = Fields::of_request(request);
    let draft = read(&mut fields, &mut findings);
    let key = fields.text(idempotency::FIELD, &mut findings);
    let idempotency = idempotency::read_key(&call.headers, key, fingerprint, &mut findings);
    fields.finish(&mut findings);
    let warnings = findings.reject_problems()?;
    Ok((SendContext { caller: call.caller.clone(), test, idempotency, warnings }, draft))
}

fn is_test(headers: &HeaderMap, findings: &mut Findings) -> bool {
    // A value that is not ASCII is read as an unknown word, which is a problem.
    let values = headers.get_all(X_TEST_MODE).iter().map(|value| value.to_str().unwrap_or("?"));
    let is_test = read_test_mode(values);
    if is_test.is_none() {
        findings.problem("", TEST_MODE_PROBLEM);
    }
    is_test.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn an_unknown_test_mode_is_a_problem_and_counts_as_test_mode() {
        let read = |value: &[u8]| {
            let name = X_TEST_MODE.parse().unwrap();
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_bytes(value).unwrap())]);
            let mut findings = Findings::default();
            (is_test(&headers, &mut findings), findings.problems.len())
        };
        for value in [&b"true"[..], b"TRUE", b"1", b"yes", b"On"] {
            assert_eq!(read(value), (true, 0));
        }
        assert_eq!(read(b"false"), (false, 0));
        for value in [&b""[..], b"enabled", b"true\xff"] {
            assert_eq!(read(value), (true, 1));
        }
        assert!(!is_test(&HeaderMap::new(), &mut Findings::default()));
    }
}
