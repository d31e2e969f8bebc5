//! Signs with one key and formats the header.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{Ed25519KeyPair, RSA_PKCS1_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postroad_model::{DomainName, Timestamp};

use super::Canonical;
use super::header::push_relaxed;
use super::short_rsa::ShortRsaKey;

const FIELD_NAME: &str = "DKIM-Signature";
/// Lines of a signature stay within this length if possible.
const COLUMNS_MAX: usize = 76;

/// Signs for one domain with one key, on any number of threads.
pub struct Signer {
    selector: String,
    domain: DomainName,
    key: Arc<Key>,
}

enum Key {
    Rsa(rsa::KeyPair),
    ShortRsa(Box<ShortRsaKey>),
    Ed25519(Ed25519KeyPair),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignerError {
    #[error("this is not an RSA private key of at least 1024 bits in PKCS #8")]
    RsaKey,
    #[error("this is not an Ed25519 private key in PKCS #8")]
    Ed25519Key,
    #[error("the selector is not a DNS name of at most 128 letters, digits, hyphens, underscores and dots")]
    Selector,
}

impl Signer {
    pub fn rsa(selector: &str, domain: DomainName, pkcs8_der: &[u8]) -> Result<Self, SignerError> {
        let key = if let Ok(pair) = rsa::KeyPair::from_pkcs8(pkcs8_der) {
            Key::Rsa(pair)
        } else {
            let short = ShortRsaKey::from_pkcs8(pkcs8_der).ok_or(SignerError::RsaKey)?;
            Key::ShortRsa(Box::new(short))
        };
        Self::new(selector, domain, key)
    }

    /// A signer with an Ed25519 key (RFC 8463). Not every receiver supports Ed25519, so it is used only in addition to
    /// RSA.
    pub fn ed25519(selector: &str, domain: DomainName, pkcs8_der: &[u8]) -> Result<Self, SignerError> {
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8_der).map_err(|_| SignerError::Ed25519Key)?;
        Self::new(selector, domain, Key::Ed25519(pair))
    }

    pub fn is_selector(text: &str) -> bool {
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        text.len() <= 128 && text.split('.').all(is_label)
    }

    fn new(selector: &str, domain: DomainName, key: Key) -> Result<Self, SignerError> {
        if !Self::is_selector(selector) {
            return Err(SignerError::Selector);
        }
        Ok(Self { selector: selector.to_owned(), domain, key: Arc::new(key) })
    }

    pub fn selector(&self) -> &str {
        &self.selector
    }

    pub fn domain(&self) -> &DomainName {
        &self.domain
    }

    /// The complete header field with its line ending, to put before the message. `at` becomes `t=`: callers pass the
    /// same time for every attempt. Signing with an RSA key takes about half a millisecond.
    pub fn sign(&self, canonical: &Canonical, at: Timestamp) -> String {
        let mut lines = FoldedLines::new(format!("{FIELD_NAME}: v=1;"));
        lines.word(&format!(" a={};", self.algorithm()));
        lines.word(" c=relaxed/relaxed;");
        lines.word(&format!(" d={};", self.domain.as_str()));
        lines.word(&format!(" s={};", self.selector));
        lines.word(&format!(" t={};", at.as_secs().max(0)));
        for (index, name) in canonical.names.iter().enumerate() {
            let before = if index == 0 { " h=" } else { "" };
            let after = if index + 1 == canonical.names.len() { ';' } else { ':' };
            lines.word(&format!("{before}{name}{after}"));
        }
        lines.word(&format!(" bh={};", canonical.body_hash_base64));
        lines.word(" b=");

        // RFC 6376 3.7: the signature covers its own header up to here, without a line ending.
        let mut input = canonical.headers.clone();
        let unsigned = &lines.text[FIELD_NAME.len() + 1..];
        push_relaxed(FIELD_NAME.as_bytes(), unsigned.as_bytes(), &mut input);
        lines.base64(&STANDARD.encode(self.signature_of(&input)));
        lines.text + "\r\n"
    }

    fn algorithm(&self) -> &'static str {
        match *self.key {
            Key::Rsa(_) | Key::ShortRsa(_) => "rsa-sha256",
            Key::Ed25519(_) => "ed25519-sha256",
        }
    }

    fn signature_of(&self, input: &[u8]) -> Vec<u8> {
        match &*self.key {
            Key::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                // PKCS #1 v1.5 padding uses no random bytes, but `sign` requires a source of them.
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), input, &mut signature)
                    .expect("a checked key signs, and the buffer has the length of its modulus");
                signature
            }
            Key::ShortRsa(key) => key.sign(input),
            // RFC 8463 3: the hash is signed.
            Key::Ed25519(pair) => pair.sign(digest(&SHA256, input).as_ref()).as_ref().to_vec(),
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("selector", &self.selector)
            .field("domain", &self.domain)
            .field("algorithm", &self.algorithm())
            .finish()
    }
}

/// Header text, folded before a word would cross the last column. Continuation lines begin with a tab.
struct FoldedLines {
    text: String,
    column: usize,
}

impl FoldedLines {
    fn new(start: String) -> Self {
        Self { column: start.len(), text: start }
    }

    /// Adds a word; a fold replaces its leading space.
    fn word(&mut self, word: &str) {
        if self.column + word.len() > COLUMNS_MAX {
            self.fold();
            self.push(word.trim_start());
        } else {
            self.push(word);
        }
    }

    /// Adds base64, folded anywhere, which RFC 6376 3.5 allows.
    fn base64(&mut self, mut digits: &str) {
        while !digits.is_empty() {
            if self.column >= COLUMNS_MAX {
                self.fold();
            }
            let (line, rest) = digits.split_at(digits.len().min(COLUMNS_MAX - self.column));
            self.push(line);
            digits = rest;
        }
    }

    fn fold(&mut self) {
        self.text.push_str("\r\n\t");
        self.column = 1;
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.len();
    }
}
