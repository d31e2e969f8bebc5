//! Forms that create something once, however often they are sent: each has a random field, which becomes the idempotency
//! key of the creation.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postroad_app::accounts::CreationKey;

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
