//! Base64 as clients send it: with or without line breaks and padding.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// `None` if it is not base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let is_break = |b: u8| matches!(b, b'\r' | b'\n' | b' ' | b'\t');
    if text.bytes().any(is_break) {
        let dense: Vec<u8> = text.bytes().filter(|b| !is_break(*b)).collect();
        return LENIENT.decode(dense).ok();
    }
    LENIENT.decode(text).ok()
}

/// The most bytes `text` can decode to: lets sizes be refused before anything is decoded.
pub(super) fn decoded_bytes_max(text: &str) -> usize {
    text.len() / 4 * 3 + 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_and_missing_padding_are_fine() {
        for text in ["aGVsbG8=", "aGVsbG8", "aGVs\r\nbG8=\r\n", " aGVs bG8="] {
            assert_eq!(decode(text).as_deref(), Some(&b"hello"[..]), "{text:?}");
        }
    }

    #[test]
    fn other_text_is_not_base64() {
        for text in ["%%%", "aGVsbG8=x", "a", "aGVs\u{e9}"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}
