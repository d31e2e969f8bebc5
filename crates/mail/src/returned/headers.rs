//! The decoded header section of a message, within limits.

use crate::encoded_word::decode_words;
use crate::header_block::HeaderBlock;

use super::address;

/// Maximum number of fields that are read; relevant ones are among the first.
const FIELDS_MAX: usize = 500;
const VALUE_BYTES_MAX: usize = 4_096;

/// Names in lower case with their decoded values, in order.
#[derive(Debug, Default)]
pub(super) struct Headers(Vec<(String, String)>);

impl Headers {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let fields = HeaderBlock::new(bytes).filter(|field| !field.name.is_empty()).take(FIELDS_MAX);
        let decoded = fields.map(|field| {
            let name = String::from_utf8_lossy(field.name.trim_ascii()).to_ascii_lowercase();
            let value = field.unfolded();
            let value = &value[..value.floor_char_boundary(VALUE_BYTES_MAX)];
            (name, decode_words(value).into_owned())
        });
        Self(decoded.collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first field of this name, which must be in lower case.
    pub(super) fn find(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The Message-ID without its angle brackets.
    pub(super) fn message_id(&self) -> Option<String> {
        let id = self.find("message-id")?.trim().trim_matches(['<', '>']).trim();
        (!id.is_empty()).then(|| id.to_owned())
    }

    /// All addresses in all fields of these names.
    pub(super) fn addresses(&self, names: &[&str]) -> Vec<String> {
        names.iter().flat_map(|name| self.all(name)).flat_map(address::find_all).map(str::to_owned).collect()
    }

    /// All fields of this name, which must be in lower case.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}
