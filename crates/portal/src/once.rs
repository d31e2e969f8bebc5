//! Forms that create or send something once, however often they are submitted: each has a random field, which becomes
//! the idempotency key of the creation or of the send.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::error::Unspecified;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postroad_app::accounts::CreationKey;
use postroad_app::send::IdempotencyRequest;

use crate::fields::Fields;

/// Name of the hidden field.
const FIELD: &str = "once";

/// Value of the field for a new form. Without random bytes the field stays empty: the form works, but a second
/// submission is not recognised.
pub(crate) fn new_once() -> String {
    once_from(aws_lc_rs::rand::fill)
}

fn once_from(fill: impl FnOnce(&mut [u8]) -> Result<(), Unspecified>) -> String {
    let mut bytes = [0_u8; 16];
    match fill(&mut bytes) {
        Ok(()) => URL_SAFE_NO_PAD.encode(bytes),
        Err(Unspecified) => String::new(),
    }
}

/// Idempotency key of a form that creates something; `None` if the field is absent or empty. The key is a hash: the
/// field may have been changed to a text that is too long to store.
pub(crate) fn creation_key(fields: &Fields) -> Option<CreationKey> {
    fields.filled(FIELD).map(|once| {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest(&SHA256, once.as_bytes()).as_ref());
        CreationKey { key: format!("portal-{}", URL_SAFE_NO_PAD.encode(fingerprint)), fingerprint }
    })
}

/// Idempotency key of a form that sends a message; `None` if the field is absent or empty. The values in `parts` are
/// part of the key: a form that is changed and submitted again sends another message.
pub(crate) fn send_key(fields: &Fields, parts: &[&str]) -> Option<IdempotencyRequest> {
    let once = fields.filled(FIELD)?;
    let text = [&[once], parts].concat().join("\n");
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    Some(IdempotencyRequest { key: format!("portal-{}", URL_SAFE_NO_PAD.encode(fingerprint)), fingerprint })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_have_different_idempotency_keys() {
        let key = |once: &str| creation_key(&Fields::parse(format!("once={once}").as_bytes()));
        let (one, other) = (key(&new_once()), key(&new_once()));
        assert_ne!(one.expect("the field is filled").key, other.expect("the field is filled").key);
    }

    #[test]
    fn forms_have_no_idempotency_key_without_random_bytes() {
        let once = once_from(|_| Err(Unspecified));
        assert_eq!(once, "");
        let fields = Fields::parse(format!("once={once}").as_bytes());
        assert!(creation_key(&fields).is_none());
        assert!(send_key(&fields, &["ann@example.com"]).is_none());
    }
}
