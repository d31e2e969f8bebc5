//! DKIM keys, and the DNS records that publish them (RFC 6376 3.6.1, RFC 8463 4).

use std::fmt;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::dkim::ShortRsaKey;

/// Prefix of an Ed25519 public key in X.509 form (RFC 8410 4); the 32 bytes of the key follow.
const ED25519_SPKI_START: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Longer texts are not keys.
const PEM_BYTES_MAX: usize = 32 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DkimAlgorithm {
    Rsa,
    Ed25519,
}

/// A private key with its public half. Generated RSA keys have 2048 bits: every receiver can verify them, and their
/// records fit into the DNS. Imported ones may have 1024 bits, as Postal's do. Ed25519 is for a second signature only.
pub struct DkimKey {
    private_pkcs8_der: Vec<u8>,
    public_spki_der: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DkimKeyError {
    #[error("a key could not be generated")]
    Generate,
    #[error("this is neither an RSA private key of at least 1024 bits nor an Ed25519 one in PKCS #8")]
    Rejected,
    #[error("the key could not be encoded")]
    Encode,
    #[error(
        "this is not a private key in PEM form, which begins with `-----BEGIN PRIVATE KEY-----` or `-----BEGIN RSA PRIVATE KEY-----`"
    )]
    NoPem,
    #[error("the key is encrypted; decrypt it first (`openssl pkey -in key.pem`)")]
    Encrypted,
    #[error("the RSA key is too short: receivers want 1024 bits at the least, better 2048 (RFC 8301)")]
    TooShort,
}

impl DkimKey {
    /// Generates an RSA key. Takes about a tenth of a second: not for a thread that serves requests.
    pub fn generate() -> Result<Self, DkimKeyError> {
        Self::from_pair(&KeyPair::generate(KeySize::Rsa2048).map_err(|_| DkimKeyError::Generate)?)
    }

    pub fn generate_ed25519() -> Result<Self, DkimKeyError> {
        Self::from_ed25519_pair(&Ed25519KeyPair::generate().map_err(|_| DkimKeyError::Generate)?)
    }

    /// Parses a PKCS #8 key, RSA or Ed25519.
    pub fn from_pkcs8_der(der: &[u8]) -> Result<Self, DkimKeyError> {
        match KeyPair::from_pkcs8(der) {
            Ok(pair) => Self::from_pair(&pair),
            Err(error) if is_short(&error) => Self::from_short(ShortRsaKey::from_pkcs8(der)),
            Err(_) => {
                Self::from_ed25519_pair(&Ed25519KeyPair::from_pkcs8(der).map_err(|_| DkimKeyError::Rejected)?)
            }
        }
    }

    /// Parses PKCS #8 (RSA or Ed25519) or PKCS #1 (RSA), as `openssl` and other mail servers write them.
    pub fn from_pem(text: &str) -> Result<Self, DkimKeyError> {
        let (label, der) = read_pem(text).ok_or(DkimKeyError::NoPem)?;
        let rsa = match label {
            "PRIVATE KEY" => KeyPair::from_pkcs8(&der),
            "RSA PRIVATE KEY" => KeyPair::from_der(&der),
            "ENCRYPTED PRIVATE KEY" => return Err(DkimKeyError::Encrypted),
            _ => return Err(DkimKeyError::NoPem),
        };
        match rsa {
            Ok(pair) => Self::from_pair(&pair),
            Err(error) if is_short(&error) && label == "PRIVATE KEY" => {
                Self::from_short(ShortRsaKey::from_pkcs8(&der))
            }
            Err(error) if is_short(&error) => Self::from_short(ShortRsaKey::from_pkcs1(&der)),
            Err(_) => Self::from_ed25519_pair(
                &Ed25519KeyPair::from_pkcs8(&der).map_err(|_| DkimKeyError::Rejected)?,
            ),
        }
    }

    pub fn algorithm(&self) -> DkimAlgorithm {
        if self.public_spki_der.starts_with(&ED25519_SPKI_START) {
            DkimAlgorithm::Ed25519
        } else {
            DkimAlgorithm::Rsa
        }
    }

    fn from_pair(pair: &KeyPair) -> Result<Self, DkimKeyError> {
        let private: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| DkimKeyError::Encode)?;
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(|_| DkimKeyError::Encode)?;
        Ok(Self { private_pkcs8_der: private.as_ref().to_vec(), public_spki_der: public.as_ref().to_vec() })
    }

    fn from_short(key: Option<ShortRsaKey>) -> Result<Self, DkimKeyError> {
        let key = key.ok_or(DkimKeyError::TooShort)?;
        let (private_pkcs8_der, public_spki_der) = key.to_der().ok_or(DkimKeyError::Encode)?;
        Ok(Self { private_pkcs8_der, public_spki_der })
    }

    fn from_ed25519_pair(pair: &Ed25519KeyPair) -> Result<Self, DkimKeyError> {
        let private: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| DkimKeyError::Encode)?;
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(|_| DkimKeyError::Encode)?;
        Ok(Self { private_pkcs8_der: private.as_ref().to_vec(), public_spki_der: public.as_ref().to_vec() })
    }

    /// The private key, which must stay secret.
    pub fn private_pkcs8_der(&self) -> &[u8] {
        &self.private_pkcs8_der
    }

    pub fn public_spki_der(&self) -> &[u8] {
        &self.public_spki_der
    }
}

impl fmt::Debug for DkimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DkimKey").field("public", &STANDARD.encode(&self.public_spki_der)).finish()
    }
}

/// Whether the library rejected the key only because it is a short RSA key.
fn is_short(error: &KeyRejected) -> bool {
    error.to_string() == "TooSmall"
}

/// Label and content of the first PEM block (RFC 7468).
fn read_pem(text: &str) -> Option<(&str, Vec<u8>)> {
    if text.len() > PEM_BYTES_MAX {
        return None;
    }
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    // Old encrypted keys have header lines before their content.
    if body.contains("ENCRYPTED") {
        return Some(("ENCRYPTED PRIVATE KEY", Vec::new()));
    }
    let body: String = body.split_ascii_whitespace().collect();
    Some((label, STANDARD.decode(body).ok()?))
}

/// The TXT record for a public key of either kind. The record of a 2048-bit RSA key is longer than the 255 bytes of a
/// DNS string and must be split when published.
pub fn dkim_txt(public_spki_der: &[u8]) -> String {
    // RFC 8463 4: an Ed25519 record has the bare key, an RSA record the X.509 form.
    if let Some(key) = public_spki_der.strip_prefix(&ED25519_SPKI_START) {
        return format!("v=DKIM1; k=ed25519; p={}", STANDARD.encode(key));
    }
    format!("v=DKIM1; k=rsa; p={}", STANDARD.encode(public_spki_der))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_stored_key_signs_what_its_record_verifies() {
        let key = DkimKey::generate().unwrap();
        let stored = DkimKey::from_pkcs8_der(key.private_pkcs8_der()).unwrap();
        assert_eq!(stored.public_spki_der(), key.public_spki_der());

        let pair = KeyPair::from_pkcs8(stored.private_pkcs8_der()).unwrap();
        assert_eq!(pair.public_modulus_len(), 256);
        let mut signature = vec![0; 256];
        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), b"mail", &mut signature).unwrap();

        let record = dkim_txt(key.public_spki_der());
        let published = STANDARD.decode(record.strip_prefix("v=DKIM1; k=rsa; p=").unwrap()).unwrap();
        let verifier = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, published);
        verifier.verify(b"mail", &signature).unwrap();
        assert!(verifier.verify(b"other", &signature).is_err());
    }

    #[test]
    fn an_ed25519_record_has_the_32_bytes_that_verify() {
        let key = DkimKey::generate_ed25519().unwrap();
        let stored = DkimKey::from_pkcs8_der(key.private_pkcs8_der()).unwrap();
        assert_eq!(stored.public_spki_der(), key.public_spki_der());

        let record = dkim_txt(key.public_spki_der());
        let published = STANDARD.decode(record.strip_prefix("v=DKIM1; k=ed25519; p=").unwrap()).unwrap();
        assert_eq!(published.len(), 32);
        let signature = Ed25519KeyPair::from_pkcs8(stored.private_pkcs8_der()).unwrap().sign(b"mail");
        UnparsedPublicKey::new(&ED25519, published).verify(b"mail", signature.as_ref()).unwrap();
    }

    #[test]
    fn text_that_is_no_key_is_rejected() {
        assert_eq!(DkimKey::from_pkcs8_der(b"no key").unwrap_err(), DkimKeyError::Rejected);
    }

    fn pem(label: &str, der: &[u8]) -> String {
        let lines: Vec<String> = STANDARD
            .encode(der)
            .as_bytes()
            .chunks(64)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\r\n"))
    }

    #[test]
    fn pem_and_der_give_the_same_key() {
        for (key, algorithm) in [
            (DkimKey::generate().unwrap(), DkimAlgorithm::Rsa),
            (DkimKey::generate_ed25519().unwrap(), DkimAlgorithm::Ed25519),
        ] {
            let read = DkimKey::from_pem(&pem("PRIVATE KEY", key.private_pkcs8_der())).unwrap();
            assert_eq!(read.public_spki_der(), key.public_spki_der());
            assert_eq!(read.algorithm(), algorithm);
        }
        // PKCS #8 wraps PKCS #1: 26 bytes before the RSAPrivateKey of a 2048-bit key (RFC 8017 A.1.2).
        let key = DkimKey::generate().unwrap();
        let read = DkimKey::from_pem(&pem("RSA PRIVATE KEY", &key.private_pkcs8_der()[26..])).unwrap();
        assert_eq!(read.public_spki_der(), key.public_spki_der());
    }

    const PEM_1024_BITS: &str = "-----BEGIN RSA PRIVATE KEY-----
MIICWwIBAAKBgQC7fYFntnOYxIR9xWXxBMmDJBY3tmckoQZ0EoUqQElgEu6gtx+U
hjfBu/QxZBiRGeAmdAnI3cc0GcQrYDUNL8WgtCaUyOVkBk20OatidKK3Qh6I6o4p
G3e20MiGzrg1FFpgLt2cWf413Kf27Bk7YIgFtRR9JlJ4L/QIAatop6zlvQIDAQAB
AoGAIB/P9VI4mjtJrDcPUW2NjW+4ctFI+OiyL18g++1J5TE5O8ZEnfElSoeGvpO0
9d+mHVCSgJ0nTZEAoKH6VQkTZjuEDKgRsZ8/wng4521jLTDfNj3XD21Z6oC/nVRS
Jq6EjcQRO9plEpnq8Z8r7mF+J3I1rQydIy5QlNR2j9RmHiECQQDcSz0qY/wiS193
jBWJefkFo2l7jh2mKKI8NWJ+v4utyOxVb+MvCd+TXWsT/TeG8nU7C7z5UmEVQXim
JqV4aAUJAkEA2eEhCaviwEDCPDhulbK0P+Q4MO/URwVayI1CFpPZMWufvoy1L8Q7
rl2X2yywzz6XSPhI2AcMYP1Py5ulIzucFQJAAVWfWDtk0pxcRrAdjUik3ojf4bS5
r0D9wpmcMCJe6T2XWOklmipYJV9if6uAA5xCY4otqeD635MW9QK06+bNaQJATL1x
sIFdFU/52dIaiRlvSU2tyPa/8t/c8ORoEaGzjyeUFT5kFtXsG2cVtHnSMLyf9nCU
35nj70lpUJKaoIU/XQJAJ0pgs7pMYt+iEa03xn7Tt2BP2qIz8Fwv1zoan+WzR0vL
jfxjpyhF/s4DyPYoTWQXFk8ERjX7DFqEBQ4q36+LHQ==
-----END RSA PRIVATE KEY-----";

    #[test]
    fn a_key_of_1024_bits_can_be_imported() {
        let key = DkimKey::from_pem(PEM_1024_BITS).unwrap();
        assert_eq!(key.algorithm(), DkimAlgorithm::Rsa);
        let stored = DkimKey::from_pkcs8_der(key.private_pkcs8_der()).unwrap();
        assert_eq!(stored.public_spki_der(), key.public_spki_der());
        let read = DkimKey::from_pem(&pem("PRIVATE KEY", key.private_pkcs8_der())).unwrap();
        assert_eq!(read.public_spki_der(), key.public_spki_der());
    }

    #[test]
    fn problems_of_a_pem_key_are_named() {
        let pem_512_bits = "-----BEGIN RSA PRIVATE KEY-----
MIIBOwIBAAJBAMGkBG/II6P8sgnNvFpWZdhTgdF++l3aNY4rKF7HEW6wLDnEkYf/
yGBS988MagvZF8TXemTGF+NZW+Qu7TL0niUCAwEAAQJBAMGO1pR5xQ51V+2uxfiy
5givqFMljtPje6cJgsgCSm2NUm1i85jxjFbVSI1u9vLQsq4w5yV5R8qTFQXs6XNb
o2ECIQD3zvLZNn6Q0zMl4TfgwHyOFUwx01TojQ2BVav/0tMUvQIhAMgKrjOWnFwh
mdtqHSCRiUrpCMN3Bvjesl3FV8ZywWmJAiAp1NZr0mYlHnHY6B7dosCj33aARrNj
mkP4XDTvt3AIZQIgWTLiAKDs8ewNthf4Cvi6VovY24fstPZgZI3FmPi8o7kCIQCI
mYOsctbR/dFLm2V2+cLxo6UMlFUJg2qQsjIB6sbe5g==
-----END RSA PRIVATE KEY-----";
        let error = |text: &str| DkimKey::from_pem(text).unwrap_err();
        assert_eq!(error(pem_512_bits), DkimKeyError::TooShort);
        assert_eq!(error("no key"), DkimKeyError::NoPem);
        assert_eq!(error(&pem("CERTIFICATE", b"x")), DkimKeyError::NoPem);
        assert_eq!(error(&pem("PRIVATE KEY", b"x")), DkimKeyError::Rejected);
        assert_eq!(error(&pem("ENCRYPTED PRIVATE KEY", b"x")), DkimKeyError::Encrypted);
        assert_eq!(error(&"x".repeat(PEM_BYTES_MAX + 1)), DkimKeyError::NoPem);
    }

    #[test]
    fn the_private_half_is_not_printed() {
        let key = DkimKey::generate().unwrap();
        let printed = format!("{key:?}");
        assert!(!printed.contains(&STANDARD.encode(key.private_pkcs8_der())));
        assert!(!printed.contains("private"));
    }
}
