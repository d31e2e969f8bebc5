//! A suppression, and the key of an address.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use postroad_model::{DomainName, EmailAddress, MessageId, ServerId, SuppressionReason, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSuppression {
    /// The address as the caller wrote it. The store keeps only the mailbox's key.
    pub address: String,
    pub reason: SuppressionReason,
    /// Explanation by the mail server, the customer or Postroad.
    pub details: String,
    pub origin_message_id: Option<MessageId>,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppression {
    /// The mailbox's key: local part in lower case, domain in DNS form. `erased:` and a hash if the address was erased.
    pub address: String,
    pub reason: SuppressionReason,
    pub details: String,
    pub origin_message_id: Option<MessageId>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// Result of adding an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedSuppression {
    /// The entry in force.
    pub stored: Suppression,
    /// Whether the entry in force is the new one; otherwise an existing entry lasts at least as long.
    pub is_new: bool,
}

/// Filter of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuppressionFilter {
    pub reason: Option<SuppressionReason>,
    /// Created at this time or later.
    pub since: Option<Timestamp>,
    /// Created before this time.
    pub until: Option<Timestamp>,
}

/// The entry after which a list continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppressionCursor {
    pub created_at: Timestamp,
    pub address: String,
}

impl SuppressionCursor {
    /// Continues after an entry.
    pub fn after(last: &Suppression) -> Self {
        Self { created_at: last.created_at, address: last.address.clone() }
    }
}

/// The key under which an address is suppressed; the same for every spelling of the address.
pub(crate) fn address_key(address: &str) -> String {
    match EmailAddress::parse(address) {
        Ok(address) => address.mailbox_key(),
        // Postroad does not send to such a text, but an imported list may contain it.
        Err(_) => address.to_ascii_lowercase(),
    }
}

/// The key of a suppression whose address was erased.
pub(crate) fn erased_key(server_id: ServerId, address_key: &str) -> String {
    let text = format!("postroad suppression {} {address_key}", server_id.0);
    let hash = digest(&SHA256, text.as_bytes());
    format!("erased:{}", BASE64_URL_SAFE_NO_PAD.encode(hash))
}

/// The key of a recipient whose domain is known: `EmailAddress::mailbox_key` without parsing the domain again.
pub(crate) fn recipient_key(rcpt_to: &str, domain: &DomainName) -> String {
    let local_part = rcpt_to.rsplit_once('@').map_or(rcpt_to, |(local_part, _)| local_part);
    format!("{}@{domain}", local_part.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipient_key_and_address_key_agree() {
        for text in ["Ann@Example.COM", "Ünï.X@bücher.example", "\"a@B\"@example.org"] {
            let address = EmailAddress::parse(text).unwrap();
            assert_eq!(recipient_key(text, address.domain()), address_key(text));
        }
        assert_eq!(address_key("No Address"), "no address");
    }
}
