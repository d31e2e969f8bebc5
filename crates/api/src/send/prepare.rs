//! What all send calls do before `app` is asked: read the fields, the idempotency key and the test mode.

use axum::http::HeaderMap;
use postroad_app::send::SendContext;

use crate::endpoint::Call;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

const X_TEST_MODE: &str = "x-test-mode";

/// Reads the request of the call with `read`; everything that is wrong with it is told at once.
pub(super) fn prepare<'a, D>(
    call: &'a Call,
    endpoint: &str,
    read: impl FnOnce(&mut Fields<'a>, &mut Findings) -> D,
) -> Result<(SendContext, D), Failure> {
    let request = json::parse_object(&call.text)?;
    let test = is_test(&call.headers);
    let fingerprint = idempotency::fingerprint(&call.headers, endpoint, test || call.caller.test, &request);
    let mut findings = Findings::default();
    let mut fields = Fields::of_request(request, &call.text);
    let draft = read(&mut fields, &mut findings);
    let key = fields.text(idempotency::FIELD, &mut findings);
    let idempotency = idempotency::request(&call.headers, key, fingerprint, &mut findings);
    fields.finish(&mut findings);
    let warnings = findings.into_warnings()?;
    Ok((SendContext { caller: call.caller.clone(), test, idempotency, warnings }, draft))
}

fn is_test(headers: &HeaderMap) -> bool {
    let value = headers.get(X_TEST_MODE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_mode_is_true_in_any_letter_case_and_nothing_else() {
        let with =
            |value: &str| HeaderMap::from_iter([(X_TEST_MODE.parse().unwrap(), value.parse().unwrap())]);
        assert!(["true", "TRUE", "True", "true "].iter().all(|value| is_test(&with(value))));
        assert!(!["false", "1", "yes", ""].iter().any(|value| is_test(&with(value))));
        assert!(!is_test(&HeaderMap::new()));
    }
}
