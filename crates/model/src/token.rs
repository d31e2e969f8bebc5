//! Random texts, such as message tokens, API keys and secrets.

use std::fmt;

use rand::Rng;
use rand::distr::Alphanumeric;
use serde::{Deserialize, Serialize};

/// Sixteen letters and digits that identify a message in API answers, SMTP replies, `Received` headers and return
/// paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageToken(pub String);

impl MessageToken {
    pub const LENGTH: usize = 16;

    pub fn random(rng: &mut impl Rng) -> Self {
        Self(random_text(rng, Self::LENGTH))
    }
}

impl fmt::Display for MessageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `length` random letters and digits, with 5.95 bits each.
pub fn random_text(rng: &mut impl Rng, length: usize) -> String {
    rng.sample_iter(Alphanumeric).take(length).map(char::from).collect()
}
