//! Spellings of an address that is erased.

use postroad_model::EmailAddress;

use crate::sql::storable;

/// Spellings of an address in texts, with ASCII letters in lower case.
pub(super) fn spellings(address: &str) -> Vec<String> {
    let spellings = match EmailAddress::parse(address) {
        Ok(address) => address.spellings(),
        Err(_) => vec![address.to_ascii_lowercase()],
    };
    spellings.iter().map(|spelling| storable(spelling).into_owned()).collect()
}

/// Whether a text contains one of the spellings, also within a longer address.
pub(super) fn mentions_any(text: &str, spellings: &[String]) -> bool {
    let lower = text.to_ascii_lowercase();
    spellings.iter().any(|spelling| lower.contains(spelling.as_str()))
}
