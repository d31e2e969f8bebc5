//! API keys and secrets: generated here, shown once, stored as hashes.

use aws_lc_rs::digest;
use postroad_model::token::random_text;
use postroad_store::KeyHash;

/// 32 letters and digits are 190 bits.
const KEY_CHARS: usize = 32;
const SECRET_CHARS: usize = 40;

/// New key and secret in clear text.
pub(crate) struct KeyPair {
    pub(crate) api_key: String,
    pub(crate) api_secret: String,
}

impl KeyPair {
    pub(crate) fn generate() -> Self {
        let mut rng = rand::rng();
        Self { api_key: random_text(&mut rng, KEY_CHARS), api_secret: random_text(&mut rng, SECRET_CHARS) }
    }

    pub(crate) fn hashes(&self) -> (KeyHash, KeyHash) {
        (hash(&self.api_key), hash(&self.api_secret))
    }
}

/// New API key or token in clear text, without a secret beside it.
pub(crate) fn new_key() -> String {
    random_text(&mut rand::rng(), KEY_CHARS)
}

/// SHA-256: the input has too much entropy to be guessed, so a slow hash has no benefit.
pub(crate) fn hash(text: &str) -> KeyHash {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    KeyHash(digest.as_ref().try_into().expect("SHA-256 gives 32 bytes"))
}
