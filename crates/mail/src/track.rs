//! Tokens of tracking links. A token names its message, and the target of a click or the address to unsubscribe.
//!
//! A token is a payload and 128 bits of HMAC-SHA256 over it, in base64url. Nobody else can create one, so a link leads
//! only where a message of ours pointed. The same link of the same message always has the same token, so every delivery
//! attempt sends the same bytes.

use std::fmt;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postroad_model::{MessageId, ServerId};
use subtle::ConstantTimeEq as _;

use crate::varint::{push_varint, take_varint};

/// Derives a separate key, because the installation's key has other uses too.
const PURPOSE: &[u8] = b"postroad tracking links\0";
const MAC_BYTES: usize = 16;
/// Longer targets are not tracked.
pub const TARGET_BYTES_MAX: usize = 4 << 10;
/// Length of the longest token: that of the longest target with the largest ids.
const TOKEN_CHARS_MAX: usize = (TARGET_BYTES_MAX + MAC_BYTES + 32).div_ceil(3) * 4;

/// First byte of a payload: version 1 in the upper half, kind in the lower.
const CLICK: u8 = 0x11;
const OPEN: u8 = 0x12;
const UNSUBSCRIBE: u8 = 0x13;

/// Creates and recognises tokens.
#[derive(Clone)]
pub struct TrackKey(hmac::Key);

/// Content of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackToken {
    pub server_id: ServerId,
    pub message_id: MessageId,
    pub kind: TrackKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrackKind {
    Click {
        target: String,
    },
    Open,
    /// An unsubscription. The token contains the address, so that the link works even after the message is deleted.
    Unsubscribe {
        address: String,
    },
}

impl TrackKey {
    /// Derives the key from the installation's secret.
    pub fn new(secret: &[u8; 32]) -> Self {
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), PURPOSE);
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }

    pub fn token(&self, server_id: ServerId, message_id: MessageId, kind: &TrackKind) -> String {
        let (kind_byte, text) = match kind {
            TrackKind::Click { target } => (CLICK, target.as_str()),
            TrackKind::Open => (OPEN, ""),
            TrackKind::Unsubscribe { address } => (UNSUBSCRIBE, address.as_str()),
        };
        let mut bytes = Vec::with_capacity(24 + text.len() + MAC_BYTES);
        bytes.push(kind_byte);
        push_varint(server_id.0 as u64, &mut bytes);
        push_varint(message_id.0 as u64, &mut bytes);
        bytes.extend_from_slice(text.as_bytes());
        let mac = hmac::sign(&self.0, &bytes);
        bytes.extend_from_slice(&mac.as_ref()[..MAC_BYTES]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Content of a token; `None` if this key did not create exactly this text.
    pub fn parse(&self, token: &str) -> Option<TrackToken> {
        if token.len() > TOKEN_CHARS_MAX {
            return None;
        }
        // Refuses extra bits after the last byte, so that each token has only one text.
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (payload, mac) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
        let expected = hmac::sign(&self.0, payload);
        if !bool::from(expected.as_ref()[..MAC_BYTES].ct_eq(mac)) {
            return None;
        }
        let (kind_byte, mut rest) = payload.split_first()?;
        let server_id = ServerId(take_varint(&mut rest)? as i64);
        let message_id = MessageId(take_varint(&mut rest)? as i64);
        let kind = match *kind_byte {
            CLICK => TrackKind::Click { target: utf8_text(rest)? },
            OPEN if rest.is_empty() => TrackKind::Open,
            UNSUBSCRIBE => TrackKind::Unsubscribe { address: utf8_text(rest)? },
            _ => return None,
        };
        Some(TrackToken { server_id, message_id, kind })
    }
}

fn utf8_text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

impl fmt::Debug for TrackKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrackKey")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LARGEST_ID: i64 = (1 << 53) - 1;

    fn key() -> TrackKey {
        TrackKey::new(&[7; 32])
    }

    fn click(target: &str) -> TrackKind {
        TrackKind::Click { target: target.to_owned() }
    }

    #[test]
    fn a_token_is_always_the_same_text() {
        let text = key().token(ServerId(1), MessageId(300), &click("https://example.com/"));
        insta::assert_snapshot!(text, @"EQGsAmh0dHBzOi8vZXhhbXBsZS5jb20vcivpEeHuCNW6Dw6npBmBNQ");
    }

    #[test]
    fn one_changed_character_anywhere_is_refused() {
        // Three lengths: the last group of base64 has one, two or three bytes.
        for target in ["https://example.com/", "https://example.com/a", "https://example.com/ab"] {
            let text = key().token(ServerId(81), MessageId(123_456_789), &click(target));
            assert!(key().parse(&text).is_some());
            for at in 0..text.len() {
                for other in (b' '..=b'~').map(char::from).filter(|other| !text[at..].starts_with(*other)) {
                    let mut changed = text.clone();
                    changed.replace_range(at..=at, &other.to_string());
                    assert_eq!(key().parse(&changed), None, "{changed}");
                }
                let mut shorter = text.clone();
                shorter.remove(at);
                assert_eq!(key().parse(&shorter), None, "{shorter}");
            }
            assert_eq!(key().parse(&format!("{text}A")), None);
            assert_eq!(key().parse(&format!("{text}=")), None);
        }
    }

    #[test]
    fn tokens_of_another_key_or_another_purpose_are_refused() {
        let text = key().token(ServerId(1), MessageId(2), &TrackKind::Open);
        assert_eq!(TrackKey::new(&[8; 32]).parse(&text), None);
        let mut payload = URL_SAFE_NO_PAD.decode(&text).unwrap();
        payload.truncate(payload.len() - MAC_BYTES);
        let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]), &payload);
        payload.extend_from_slice(&mac.as_ref()[..MAC_BYTES]);
        assert_eq!(key().parse(&URL_SAFE_NO_PAD.encode(payload)), None);
    }

    #[test]
    fn the_longest_target_is_recognised() {
        let target = click(&format!("https://{}", "x".repeat(TARGET_BYTES_MAX - 8)));
        let text = key().token(ServerId(LARGEST_ID), MessageId(LARGEST_ID), &target);
        assert_eq!(key().parse(&text).unwrap().kind, target);
    }

    proptest! {
        #[test]
        fn created_tokens_are_recognised(server in 0..=LARGEST_ID, message in 0..=LARGEST_ID, target in "\\PC{0,60}") {
            for kind in [click(&target), TrackKind::Open, TrackKind::Unsubscribe { address: target.clone() }] {
                let (server_id, message_id) = (ServerId(server), MessageId(message));
                let text = key().token(server_id, message_id, &kind);
                prop_assert_eq!(key().parse(&text), Some(TrackToken { server_id, message_id, kind }));
            }
        }

        #[test]
        fn random_texts_are_refused(text in "[A-Za-z0-9_-]{0,200}") {
            prop_assert_eq!(key().parse(&text), None);
        }
    }
}
