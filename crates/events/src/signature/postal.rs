//! Postal's signatures: RSA PKCS#1 v1.5 over the body, with the installation's key, published as a JWK.
//!
//! Receivers written for Postal verify the SHA-1 signature; a SHA-256 signature is sent beside it. aws-lc-rs does not
//! sign with SHA-1, so the `rsa` crate makes the SHA-1 signature, with blinding.

use std::fmt;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rsa::pkcs8::{DecodePrivateKey as _, EncodePublicKey as _};
use rsa::rand_core::OsRng;
use rsa::traits::PublicKeyParts as _;
use rsa::{Pkcs1v15Sign, RsaPrivateKey};
use serde_json::{Value, json};

/// DER of `DigestInfo` before a SHA-1 hash (RFC 8017 9.2, note 1).
const SHA1_PREFIX: [u8; 15] =
    [0x30, 0x21, 0x30, 0x09, 0x06, 0x05, 0x2b, 0x0e, 0x03, 0x02, 0x1a, 0x05, 0x00, 0x04, 0x14];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the installation's webhook key is not a usable RSA key in PKCS #8")]
pub struct PostalSignerError;

pub struct PostalSigner {
    sha1_key: RsaPrivateKey,
    sha256_key: RsaKeyPair,
    key_id: String,
    modulus: String,
    exponent: String,
    public_key: String,
}

/// Signatures in base64, as in the headers.
#[derive(Debug)]
pub(crate) struct PostalSignatures {
    pub(crate) sha1: String,
    pub(crate) sha256: String,
}

impl PostalSigner {
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, PostalSignerError> {
        let sha1_key = RsaPrivateKey::from_pkcs8_der(der).map_err(|_| PostalSignerError)?;
        let sha256_key = RsaKeyPair::from_pkcs8(der).map_err(|_| PostalSignerError)?;
        let modulus = URL_SAFE_NO_PAD.encode(sha1_key.n().to_bytes_be());
        let exponent = URL_SAFE_NO_PAD.encode(sha1_key.e().to_bytes_be());
        let public = sha1_key.to_public_key().to_public_key_der().map_err(|_| PostalSignerError)?;
        // RFC 7638: these members in this order, without white space.
        let members = format!(r#"{{"e":"{exponent}","kty":"RSA","n":"{modulus}"}}"#);
        let key_id = URL_SAFE_NO_PAD.encode(digest(&SHA256, members.as_bytes()));
        let public_key = STANDARD.encode(public.as_bytes());
        Ok(Self { sha1_key, sha256_key, key_id, modulus, exponent, public_key })
    }

    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// Base64 of the X.509 form: the content of a PEM file without its markers and line breaks.
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// JSON Web Key Set (RFC 7517).
    pub fn jwks(&self) -> Value {
        json!({
            "keys": [{
                "kty": "RSA",
                "n": self.modulus,
                "e": self.exponent,
                "kid": self.key_id,
                "use": "sig",
                "alg": "RS256",
            }],
        })
    }

    /// Signs the body. Takes some milliseconds: do not call on an async thread.
    pub(crate) fn sign(&self, body: &[u8]) -> Result<PostalSignatures, PostalSignerError> {
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, body);
        let scheme = Pkcs1v15Sign { hash_len: Some(20), prefix: SHA1_PREFIX.into() };
        let sha1 =
            self.sha1_key.sign_with_rng(&mut OsRng, scheme, hash.as_ref()).map_err(|_| PostalSignerError)?;
        let mut sha256 = vec![0; self.sha256_key.public_modulus_len()];
        self.sha256_key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), body, &mut sha256)
            .map_err(|_| PostalSignerError)?;
        Ok(PostalSignatures { sha1: STANDARD.encode(sha1), sha256: STANDARD.encode(sha256) })
    }
}

impl fmt::Debug for PostalSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostalSigner").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
    use aws_lc_rs::rsa::{KeyPair, KeySize};
    use aws_lc_rs::signature::{
        RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    };

    use super::*;

    #[test]
    fn both_signatures_verify_with_the_published_key() {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let signer = PostalSigner::from_pkcs8(der.as_ref()).unwrap();
        let signed = signer.sign(b"{}").unwrap();
        let public = STANDARD.decode(signer.public_key()).unwrap();
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, &public)
            .verify(b"{}", &STANDARD.decode(signed.sha1).unwrap())
            .unwrap();
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &public)
            .verify(b"{}", &STANDARD.decode(signed.sha256).unwrap())
            .unwrap();
        let jwks = signer.jwks();
        assert_eq!(jwks["keys"][0]["kid"], signer.key_id());
        assert_eq!(jwks["keys"][0]["e"], "AQAB");
        assert_eq!(jwks["keys"][0]["n"].as_str().unwrap().len(), 342);
    }

    #[test]
    fn nothing_of_the_private_key_is_printed() {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let signer = PostalSigner::from_pkcs8(der.as_ref()).unwrap();
        assert_eq!(format!("{signer:?}"), format!("PostalSigner {{ key_id: {:?}, .. }}", signer.key_id()));
    }
}
