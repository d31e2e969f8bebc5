//! Signatures of Standard Webhooks: an HMAC over id, time and body with a shared secret.

use std::fmt;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const SECRET_PREFIX: &str = "whsec_";

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is `whsec_` and the base64 of 24 to 64 bytes")]
pub struct SecretError;

/// Parsed secret.
pub struct StandardSecret(Key);

impl StandardSecret {
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let bytes = text.strip_prefix(SECRET_PREFIX).and_then(|rest| STANDARD.decode(rest).ok());
        let bytes = bytes.filter(|bytes| (24..=64).contains(&bytes.len())).ok_or(SecretError)?;
        Ok(Self(Key::new(HMAC_SHA256, &bytes)))
    }

    fn signature(&self, content: &[u8]) -> String {
        format!("v1,{}", STANDARD.encode(sign(&self.0, content)))
    }
}

impl fmt::Debug for StandardSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StandardSecret(…)")
    }
}

/// Value of `webhook-signature`: one signature for each secret.
pub(crate) fn signatures(secrets: &[StandardSecret], id: &str, epoch_secs: i64, body: &[u8]) -> String {
    let mut content = format!("{id}.{epoch_secs}.").into_bytes();
    content.extend_from_slice(body);
    let all: Vec<String> = secrets.iter().map(|secret| secret.signature(&content)).collect();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_gets_the_specified_signature() {
        let secret = StandardSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signed = signatures(&[secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn during_a_rotation_both_secrets_sign() {
        let secrets = ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "aGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8h"]
            .map(|text| StandardSecret::parse(&format!("whsec_{text}")).unwrap());
        let signed = signatures(&secrets, "evt_1", 1, b"{}");
        assert_eq!(signed.split(' ').filter(|one| one.starts_with("v1,")).count(), 2);
    }

    #[test]
    fn invalid_secrets_are_refused() {
        for text in ["", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!!"] {
            assert!(StandardSecret::parse(text).is_err(), "{text}");
        }
    }
}
