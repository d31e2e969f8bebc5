//! Return paths that identify their message (VERP): a bounce is matched by the address it is sent to. Only return paths
//! that this installation created are recognised. The form is `<token>-<ids><mac>`: the ids of server and message in
//! base 32, then 80 bits of HMAC-SHA256 over purpose, token and ids. 80 bits cannot be guessed through an SMTP server,
//! and the whole text fits into the 64 bytes of a local part.

use std::fmt;

use aws_lc_rs::hmac;
use postroad_model::{MessageId, MessageToken, ServerId};
use subtle::ConstantTimeEq as _;

use crate::base32;
use crate::varint::{push_varint, take_varint};

/// Separates MACs of this kind from other uses of the key, such as tracking links.
const PURPOSE: &[u8] = b"postroad return path\0";
const MAC_BYTES: usize = 10;
const MAC_DIGITS: usize = 16;
/// Longest local part (RFC 5321 4.5.3.1.1).
const LOCAL_PART_BYTES_MAX: usize = 64;

/// Creates and recognises return paths.
#[derive(Clone)]
pub struct ReturnPathKey(hmac::Key);

impl ReturnPathKey {
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Local part of a message's return path, at most 59 bytes; every attempt has the same.
    pub fn local_part(&self, server_id: ServerId, message_id: MessageId, token: &MessageToken) -> String {
        let mut ids = Vec::with_capacity(16);
        push_varint(server_id.0 as u64, &mut ids);
        push_varint(message_id.0 as u64, &mut ids);
        let payload = format!("{token}-{}", base32::encode(&ids));
        let mac = self.mac(&payload.to_ascii_lowercase());
        payload + &mac
    }

    /// Message of a return path; `None` if this key did not create it. Ignores letter case: relays change it.
    pub fn parse(&self, local_part: &str) -> Option<(ServerId, MessageId)> {
        if local_part.len() > LOCAL_PART_BYTES_MAX || !local_part.is_ascii() {
            return None;
        }
        let text = local_part.to_ascii_lowercase();
        let (payload, mac) = text.split_at_checked(text.len().checked_sub(MAC_DIGITS)?)?;
        if !bool::from(self.mac(payload).as_bytes().ct_eq(mac.as_bytes())) {
            return None;
        }
        let (_, ids) = payload.rsplit_once('-')?;
        let ids = base32::decode(ids)?;
        let mut rest = ids.as_slice();
        let server_id = ServerId(take_varint(&mut rest)? as i64);
        let message_id = MessageId(take_varint(&mut rest)? as i64);
        Some((server_id, message_id))
    }

    /// MAC over the text `<token>-<ids>`, not over the decoded ids. `base32::decode` ignores left-over bits, so several
    /// texts give the same ids; only the text that `local_part` wrote has this MAC.
    fn mac(&self, payload: &str) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(PURPOSE);
        context.update(payload.as_bytes());
        base32::encode(&context.sign().as_ref()[..MAC_BYTES])
    }
}

impl fmt::Debug for ReturnPathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReturnPathKey")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LARGEST_ID: i64 = (1 << 53) - 1;

    fn key() -> ReturnPathKey {
        ReturnPathKey::new(&[7; 32])
    }

    fn token() -> MessageToken {
        MessageToken("aB3dE5fG7hI9jK1l".to_owned())
    }

    #[test]
    fn a_return_path_is_always_the_same_text() {
        let text = key().local_part(ServerId(1), MessageId(300), &token());
        insta::assert_snapshot!(text, @"aB3dE5fG7hI9jK1l-agwaejtwpsq2egdaq77pw");
    }

    #[test]
    fn one_changed_character_anywhere_is_refused() {
        let ids = (ServerId(81), MessageId(123_456_789));
        let text = key().local_part(ids.0, ids.1, &token());
        assert_eq!(key().parse(&text), Some(ids));
        for at in 0..text.len() {
            for other in (b' '..=b'~').map(char::from) {
                let mut changed = text.clone();
                changed.replace_range(at..=at, &other.to_string());
                let expected = changed.eq_ignore_ascii_case(&text).then_some(ids);
                assert_eq!(key().parse(&changed), expected, "{changed}");
            }
            let mut shorter = text.clone();
            shorter.remove(at);
            assert_eq!(key().parse(&shorter), None, "{shorter}");
        }
    }

    #[test]
    fn letter_case_of_a_return_path_is_ignored() {
        let ids = (ServerId(81), MessageId(LARGEST_ID));
        let text = key().local_part(ids.0, ids.1, &token());
        assert_eq!(key().parse(&text.to_ascii_lowercase()), Some(ids));
        assert_eq!(key().parse(&text.to_ascii_uppercase()), Some(ids));
    }

    #[test]
    fn the_largest_ids_fit_a_local_part() {
        let text = key().local_part(ServerId(LARGEST_ID), MessageId(LARGEST_ID), &token());
        assert_eq!(text.len(), 59);
    }

    #[test]
    fn a_return_path_of_another_key_is_refused() {
        let text = key().local_part(ServerId(1), MessageId(2), &token());
        assert_eq!(ReturnPathKey::new(&[8; 32]).parse(&text), None);
    }

    #[test]
    fn a_mac_for_another_purpose_is_refused() {
        let payload = "ab3de5fg7hi9jk1l-aebq";
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]), payload.as_bytes());
        let forged = format!("{payload}{}", base32::encode(&tag.as_ref()[..MAC_BYTES]));
        assert_eq!(key().parse(&forged), None);
        assert!(
            key().parse(&format!("{payload}{}", key().mac(payload))).is_some(),
            "everything but the MAC was right"
        );
    }

    proptest! {
        #[test]
        fn created_return_paths_are_recognised(server in 0..=LARGEST_ID, message in 0..=LARGEST_ID, token in "[A-Za-z0-9]{16}") {
            let text = key().local_part(ServerId(server), MessageId(message), &MessageToken(token));
            prop_assert!(text.len() <= LOCAL_PART_BYTES_MAX);
            prop_assert_eq!(key().parse(&text), Some((ServerId(server), MessageId(message))));
        }

        #[test]
        fn random_texts_are_refused(text in "\\PC{0,70}") {
            prop_assert_eq!(key().parse(&text), None);
        }
    }
}
