//! The hash of an audit entry, computed over the entry and the previous entry's hash.

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::json;

use super::AuditEntry;

pub(super) const HASH_BYTES: usize = 32;
/// The hash that precedes the first entry.
pub(super) const START: [u8; HASH_BYTES] = [0; HASH_BYTES];

pub(super) fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// Decodes hexadecimal digits; empty if the text is not hexadecimal.
pub(super) fn from_hex(text: &str) -> Vec<u8> {
    let byte = |at: usize| text.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    (0..text.len()).step_by(2).map(byte).collect::<Option<_>>().unwrap_or_default()
}

pub(super) fn hash(
    previous: &[u8],
    entry: &AuditEntry,
    before: Option<&str>,
    after: Option<&str>,
) -> Vec<u8> {
    // A JSON array is unambiguous, so different entries give different texts.
    let text = json!([
        entry.account_id,
        entry.seq,
        entry.at.as_micros(),
        entry.actor,
        entry.actor_id,
        entry.address,
        entry.operation,
        entry.subject,
        entry.subject_id,
        before,
        after,
    ])
    .to_string();
    let mut bytes = previous.to_vec();
    bytes.extend_from_slice(text.as_bytes());
    digest(&SHA256, &bytes).as_ref().to_vec()
}
