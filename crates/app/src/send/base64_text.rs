//! Base64 as clients send it: with or without line breaks and padding.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Accepts base64 with or without padding.
const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes a text; `None` if it is not base64. Removes line breaks without copying the text, because a copy would cost
/// memory.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.bytes().any(is_white_space) {
        return LENIENT_BASE64.decode(text).ok();
    }
    let mut decoded = Vec::with_capacity(decoded_bytes_max(text));
    decode_pieces(text, |piece| decoded.extend_from_slice(piece))?;
    Some(decoded)
}

/// Decodes piece by piece, so that the decoded text need not be in memory as a whole. `None` if it is not base64.
pub(super) fn decode_pieces(text: &str, mut take: impl FnMut(&[u8])) -> Option<()> {
    let mut piece = [0; PIECE_BYTES];
    let mut decoded = [0; PIECE_BYTES];
    let mut bytes = text.bytes().filter(|b| !is_white_space(*b));
    loop {
        let mut count = 0;
        while count < piece.len()
            && let Some(byte) = bytes.next()
        {
            piece[count] = byte;
            count += 1;
        }
        let length = LENIENT_BASE64.decode_slice(&piece[..count], &mut decoded).ok()?;
        take(&decoded[..length]);
        if count < piece.len() {
            return Some(());
        }
        if piece.ends_with(b"=") {
            // Nothing may follow the padding.
            return bytes.next().is_none().then_some(());
        }
    }
}

fn is_white_space(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n' | b' ' | b'\t')
}

/// Length of a piece: a multiple of four, so that each piece can be decoded by itself.
const PIECE_BYTES: usize = 4 << 10;

/// Upper bound of the decoded size: large texts are refused before anything is decoded.
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

    #[test]
    fn long_texts_with_line_breaks_are_decoded_in_pieces() {
        for length in [3_070, 3_071, 3_072, 3_073, 10_000] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let text = base64::prelude::BASE64_STANDARD.encode(&bytes);
            assert_eq!(decode(&format!("\n{text}")).as_deref(), Some(&bytes[..]), "{length}");
            assert_eq!(decode(&format!("\n{text}AAAA")).is_some(), length % 3 == 0, "{length}");
        }
    }
}
