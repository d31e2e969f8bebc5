//! RSA keys of 1024 to 2047 bits, which aws-lc-rs does not support. Other mail servers created such keys (Postal's have
//! 1024 bits), and a domain that moves to Postroad keeps its key until the key is rotated.

use aws_lc_rs::digest::{SHA256, digest};
use rsa::pkcs1::DecodeRsaPrivateKey as _;
use rsa::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, EncodePublicKey as _};
use rsa::rand_core::OsRng;
use rsa::traits::PublicKeyParts as _;
use rsa::{Pkcs1v15Sign, RsaPrivateKey};

/// Shortest key; receivers refuse shorter ones (RFC 8301 3.2).
const BITS_MIN: usize = 1024;
/// DigestInfo of a SHA-256 hash, up to the hash itself (RFC 8017 9.2).
const SHA256_PREFIX: [u8; 19] = [
    0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00,
    0x04, 0x20,
];

pub(crate) struct ShortRsaKey(RsaPrivateKey);

impl ShortRsaKey {
    /// `None` for an invalid key, or one shorter than `BITS_MIN`.
    pub(crate) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        Self::checked(RsaPrivateKey::from_pkcs8_der(der).ok()?)
    }

    pub(crate) fn from_pkcs1(der: &[u8]) -> Option<Self> {
        Self::checked(RsaPrivateKey::from_pkcs1_der(der).ok()?)
    }

    fn checked(key: RsaPrivateKey) -> Option<Self> {
        (key.n().bits() >= BITS_MIN && key.validate().is_ok()).then_some(Self(key))
    }

    /// The private half in PKCS #8 and the public half in X.509 form.
    pub(crate) fn to_der(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let private = self.0.to_pkcs8_der().ok()?.as_bytes().to_vec();
        let public = self.0.to_public_key().to_public_key_der().ok()?.into_vec();
        Some((private, public))
    }

    pub(super) fn sign(&self, input: &[u8]) -> Vec<u8> {
        let scheme = Pkcs1v15Sign { hash_len: Some(32), prefix: SHA256_PREFIX.into() };
        self.0
            .sign_with_rng(&mut OsRng, scheme, digest(&SHA256, input).as_ref())
            .expect("a checked key signs a hash of the length that the scheme names")
    }
}
