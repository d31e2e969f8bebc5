//! CSRF token in every form that a signed-in person posts. It is derived from the session's secret, which a page of
//! another site does not know.

use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

/// Name of the hidden field.
pub(crate) const FIELD: &str = "csrf";

/// The token for a session with this secret. The token does not reveal the secret.
pub(crate) fn token(session_secret: &str) -> String {
    let mut context = Context::new(&SHA256);
    context.update(b"postroad form token\0");
    context.update(session_secret.as_bytes());
    URL_SAFE_NO_PAD.encode(context.finish())
}

pub(crate) fn is_valid(session_secret: &str, text: &str) -> bool {
    token(session_secret).as_bytes().ct_eq(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_for_one_session_only() {
        assert!(is_valid("a", &token("a")));
        assert!(!is_valid("a", &token("b")) && !is_valid("a", "") && !token("secret").contains("secret"));
    }
}
