//! Forms that create or send something once, however often they are submitted: each has a random field, which becomes the
//! idempotency key of the creation or of the send.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postroad_app::accounts::CreationKey;
use postroad_app::send::IdempotencyRequest;

use crate::fields::Fields;

/// Name of the hidden field.
const FIELD: &str = "once";

/// Value of the field for a new form.
pub(crate) fn new_once() -> String {
    let mut bytes = [0; 16];
    // Without random bytes the form works, but a second submission is not recognised.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Idempotency key of a form that was sent; `None` for a form without the field.
pub(crate) fn creation_key(fields: &Fields) -> Option<CreationKey> {
    fields.filled(FIELD).map(|once| {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest(&SHA256, once.as_bytes()).as_ref());
        CreationKey { key: format!("portal-{once}"), fingerprint }
    })
}

/// Idempotency key of a form that sends a message; `None` for a form without the field. The values in `parts` are part of the
/// key: a form that is changed and submitted again sends another message.
pub(crate) fn send_key(fields: &Fields, parts: &[&str]) -> Option<IdempotencyRequest> {
    let once = fields.filled(FIELD)?;
    let text = [&[once], parts].concat().join("\n");
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    Some(IdempotencyRequest { key: format!("portal-{}", URL_SAFE_NO_PAD.encode(fingerprint)), fingerprint })
}
