//! Encrypts secrets for the store: AES-256-GCM under a key that is not in the database, so that a copy of the database
//! alone reveals no secret. Also derives tokens from that key.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use rand::RngCore as _;

/// First byte of a sealed secret: the version of its format.
const FORMAT_VERSION: u8 = 1;
const KEY_ID_BYTES: usize = 4;
/// Length of format version, key id and nonce, which precede the ciphertext.
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES + NONCE_LEN;

/// The key that secrets are sealed with.
#[derive(Clone)]
pub struct SealingKey {
    bytes: [u8; 32],
}

/// Why a sealed secret cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    #[error(
        "the secret was sealed with another key: give this node the key file of the installation (`secrets.key_file`)"
    )]
    OtherKey,
    #[error("the sealed secret is damaged")]
    Damaged,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey").finish_non_exhaustive()
    }
}

impl SealingKey {
    pub fn generate() -> Self {
        let mut bytes = [0; 32];
        rand::rng().fill_bytes(&mut bytes);
        Self { bytes }
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self { bytes }
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Derives a secret text from `input`; the same on every node. Different values of `purpose` give different texts.
    pub(crate) fn derive(&self, purpose: &str, input: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.bytes);
        let tag = hmac::sign(&key, &[purpose.as_bytes(), b"\n", input].concat());
        // Only digits and letters: mail programs may end a link before other characters.
        let mut text = String::new();
        for byte in tag.as_ref() {
            text.push(char::from_digit(u32::from(byte >> 4), 16).expect("four bits are a digit"));
            text.push(char::from_digit(u32::from(byte & 15), 16).expect("four bits are a digit"));
        }
        text
    }

    /// Seals a secret for one purpose, such as `totp:12`: the result cannot be unsealed for another purpose.
    pub(crate) fn seal(&self, purpose: &str, secret: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        rand::rng().fill_bytes(&mut nonce);
        let mut sealed = secret.to_vec();
        self.cipher()
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(purpose.as_bytes()),
                &mut sealed,
            )
            .expect("a secret is shorter than the cipher's limit");
        [&[FORMAT_VERSION][..], &self.id(), &nonce, &sealed].concat()
    }

    pub(crate) fn unseal(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, UnsealError> {
        let Some((head, ciphertext)) = sealed.split_at_checked(HEAD_BYTES) else {
            return Err(UnsealError::Damaged);
        };
        if head[0] != FORMAT_VERSION {
            return Err(UnsealError::Damaged);
        }
        if head[1..=KEY_ID_BYTES] != self.id() {
            return Err(UnsealError::OtherKey);
        }
        let nonce = Nonce::try_assume_unique_for_key(&head[1 + KEY_ID_BYTES..]);
        let mut ciphertext = ciphertext.to_vec();
        let unsealed = self.cipher().open_in_place(
            nonce.map_err(|_| UnsealError::Damaged)?,
            Aad::from(purpose.as_bytes()),
            &mut ciphertext,
        );
        unsealed.map(|secret| secret.to_vec()).map_err(|_| UnsealError::Damaged)
    }

    /// Identifies the key without revealing it.
    fn id(&self) -> [u8; KEY_ID_BYTES] {
        let hash = digest(&SHA256, &self.bytes);
        hash.as_ref()[..KEY_ID_BYTES].try_into().expect("a hash is longer")
    }

    fn cipher(&self) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.bytes).expect("the key has 32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_only_with_its_key_and_purpose() {
        let (key, other) = (SealingKey::generate(), SealingKey::generate());
        let sealed = key.seal("totp:1", b"seed");
        assert!(!sealed.windows(4).any(|bytes| bytes == b"seed"));
        assert_ne!(sealed, key.seal("totp:1", b"seed"), "each sealing uses a new nonce");
        assert_eq!(key.unseal("totp:1", &sealed).as_deref(), Ok(&b"seed"[..]));
        assert_eq!(key.unseal("totp:2", &sealed), Err(UnsealError::Damaged));
        assert_eq!(other.unseal("totp:1", &sealed), Err(UnsealError::OtherKey));
        assert_eq!(key.unseal("totp:1", &sealed[..10]), Err(UnsealError::Damaged));
        let mut changed = sealed;
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(key.unseal("totp:1", &changed), Err(UnsealError::Damaged));
    }
}
