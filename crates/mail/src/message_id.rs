//! Message-IDs that can be recognised: a complaint may keep only the Message-ID, and is matched by it to the message.
//!
//! The local part is a UUID of version 8 (RFC 9562 5.8). Of its 122 bits, 53 are a unique number, 21 identify the
//! server, and 48 are an HMAC-SHA256 over the purpose, the number and the server. 48 bits cannot be guessed through
//! an SMTP server.

use std::fmt;

use aws_lc_rs::hmac;
use postroad_model::ServerId;
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

/// Separates MACs of this kind from MACs of return paths and tracking links.
const PURPOSE: &[u8] = b"postroad message-id\0";
const NUMBER_BITS: u32 = 53;
const SERVER_BITS: u32 = 21;
const MAC_BITS: u32 = 48;
const MAC_BYTES: usize = MAC_BITS as usize / 8;
/// Bits of a UUID between version and variant, and after the variant.
const MIDDLE_BITS: u32 = 12;
const LAST_BITS: u32 = 62;
const VERSION: u128 = 8;
const VARIANT: u128 = 2;

/// Creates and recognises local parts of Message-IDs.
#[derive(Clone)]
pub struct MessageIdKey(hmac::Key);

/// Content of a Message-ID that this installation created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnMessageId {
    pub server_id: ServerId,
    /// Number by which the Message-ID is unique.
    pub number: i64,
}

impl MessageIdKey {
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// UUID of a Message-ID; `None` if the number or the server's id needs more bits than the UUID has for it.
    pub fn uuid(&self, id: OwnMessageId) -> Option<Uuid> {
        let number = u64::try_from(id.number).ok().filter(|number| *number < 1 << NUMBER_BITS)?;
        let server = u64::try_from(id.server_id.0).ok().filter(|server| *server < 1 << SERVER_BITS)?;
        let payload = u128::from(number) << SERVER_BITS | u128::from(server);
        let bits = payload << MAC_BITS | self.mac(payload);
        let last = bits & ((1 << LAST_BITS) - 1);
        let middle = bits >> LAST_BITS & ((1 << MIDDLE_BITS) - 1);
        let first = bits >> (LAST_BITS + MIDDLE_BITS);
        Some(Uuid::from_u128(first << 80 | VERSION << 76 | middle << 64 | VARIANT << 62 | last))
    }

    /// Content of a Message-ID, given without its angle brackets; `None` if this key did not create it.
    pub fn parse(&self, message_id: &str) -> Option<OwnMessageId> {
        let (local_part, _) = message_id.split_once('@')?;
        // Other forms of the same UUID are not ours.
        let is_ours = local_part.len() == uuid::fmt::Hyphenated::LENGTH;
        let uuid = Uuid::try_parse(local_part).ok().filter(|_| is_ours)?;
        let (bits, last) = (uuid.as_u128(), uuid.as_u128() & ((1 << LAST_BITS) - 1));
        let middle = bits >> 64 & ((1 << MIDDLE_BITS) - 1);
        let payload = (bits >> 80 << MIDDLE_BITS | middle) << (LAST_BITS - MAC_BITS) | last >> MAC_BITS;
        let id = OwnMessageId {
            server_id: ServerId((payload & ((1 << SERVER_BITS) - 1)) as i64),
            number: (payload >> SERVER_BITS) as i64,
        };
        bool::from(self.uuid(id)?.as_bytes().ct_eq(uuid.as_bytes())).then_some(id)
    }

    fn mac(&self, payload: u128) -> u128 {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(PURPOSE);
        context.update(&payload.to_be_bytes());
        let tag = context.sign();
        tag.as_ref()[..MAC_BYTES].iter().fold(0, |mac, byte| mac << 8 | u128::from(*byte))
    }
}

impl fmt::Debug for MessageIdKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MessageIdKey")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> MessageIdKey {
        MessageIdKey::new(&[7; 32])
    }

    fn id(server: i64, number: i64) -> OwnMessageId {
        OwnMessageId { server_id: ServerId(server), number }
    }

    fn text(id: OwnMessageId) -> String {
        format!("{}@rp.example.com", key().uuid(id).unwrap())
    }

    #[test]
    fn the_local_part_is_a_uuid_of_version_8() {
        let uuid = key().uuid(id(1, 300)).unwrap();
        assert_eq!((uuid.get_version_num(), uuid.get_variant()), (8, uuid::Variant::RFC4122));
        assert_eq!(uuid.to_string(), key().uuid(id(1, 300)).unwrap().to_string());
    }

    #[test]
    fn one_changed_character_anywhere_is_refused() {
        let own = id(81, 123_456_789_012);
        let text = text(own);
        assert_eq!(key().parse(&text), Some(own));
        assert_eq!(key().parse(&text.to_ascii_uppercase()), Some(own));
        for at in 0..36 {
            for other in (b' '..=b'~').map(char::from) {
                let mut changed = text.clone();
                changed.replace_range(at..=at, &other.to_string());
                let expected = changed.eq_ignore_ascii_case(&text).then_some(own);
                assert_eq!(key().parse(&changed), expected, "{changed}");
            }
        }
    }

    #[test]
    fn ids_of_other_keys_forms_and_software_are_refused() {
        let own = text(id(1, 2));
        assert_eq!(MessageIdKey::new(&[8; 32]).parse(&own), None);
        let (uuid, domain) = own.split_once('@').unwrap();
        for foreign in [
            uuid.to_owned(),
            format!("{{{uuid}}}@{domain}"),
            format!("urn:uuid:{uuid}@{domain}"),
            format!("{}@{domain}", uuid.replace('-', "")),
            format!("0190a5f2-0000-8000-8000-000000000000@{domain}"),
            "order-17@shop.example".to_owned(),
            String::new(),
        ] {
            assert_eq!(key().parse(&foreign), None, "{foreign}");
        }
    }

    #[test]
    fn ids_that_need_too_many_bits_get_no_uuid() {
        assert!(key().uuid(id((1 << SERVER_BITS) - 1, (1 << NUMBER_BITS) - 1)).is_some());
        for (server, number) in [(1 << SERVER_BITS, 1), (-1, 1), (1, 1 << NUMBER_BITS), (1, -1)] {
            assert_eq!(key().uuid(id(server, number)), None);
        }
    }

    proptest! {
        #[test]
        fn created_ids_are_recognised(server in 0..1_i64 << SERVER_BITS, number in 0..1_i64 << NUMBER_BITS) {
            prop_assert_eq!(key().parse(&text(id(server, number))), Some(id(server, number)));
        }

        #[test]
        fn random_uuids_are_refused(bits in any::<u128>()) {
            prop_assert_eq!(key().parse(&format!("{}@rp.example.com", Uuid::from_u128(bits))), None);
        }
    }
}
