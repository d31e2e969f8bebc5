//! RFC 2047 encoded words: decodes them in a header value, and provides the two encodings for writing them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use mail_parser::decoders::charsets::map::charset_decoder;

/// Length of `=?utf-8?Q?` and `?=` around the payload.
pub(crate) const WORD_OVERHEAD_BYTES: usize = 12;
/// RFC 2047 2: an encoded word is at most 75 characters long.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 75 - WORD_OVERHEAD_BYTES;

/// Base64 decoder that accepts missing padding and non-zero bits after the last byte, as some mail programs write them.
const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes every encoded word. Text that only looks like one stays as it is.
pub(crate) fn decode_words(text: &str) -> Cow<'_, str> {
    if !text.contains("=?") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    // Bytes of adjacent words with one charset are joined before decoding: some senders split characters.
    let mut run: Option<(&str, Vec<u8>)> = None;
    let mut rest = text;
    while let Some(at) = rest.find("=?") {
        let (before, from_word) = rest.split_at(at);
        let Some(word) = parse_word(from_word) else {
            flush(&mut run, &mut out);
            out.push_str(before);
            out.push_str("=?");
            rest = &from_word[2..];
            continue;
        };
        // RFC 2047 6.2: white space between two encoded words is not part of the text.
        let between_words = run.is_some() && before.bytes().all(|b| matches!(b, b' ' | b'\t'));
        if !between_words {
            flush(&mut run, &mut out);
            out.push_str(before);
        }
        match &mut run {
            Some((charset, bytes)) if charset.eq_ignore_ascii_case(word.charset) => bytes.extend(word.bytes),
            _ => {
                flush(&mut run, &mut out);
                run = Some((word.charset, word.bytes));
            }
        }
        rest = &from_word[word.length..];
    }
    flush(&mut run, &mut out);
    out.push_str(rest);
    Cow::Owned(out)
}

fn flush(run: &mut Option<(&str, Vec<u8>)>, out: &mut String) {
    if let Some((charset, bytes)) = run.take() {
        out.push_str(&decode_charset(Some(charset), &bytes));
    }
}

struct Word<'a> {
    charset: &'a str,
    bytes: Vec<u8>,
    length: usize,
}

fn parse_word(text: &str) -> Option<Word<'_>> {
    let (charset, rest) = text.get(2..)?.split_once('?')?;
    if charset.is_empty() || charset.len() > 60 || !charset.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    let (encoding, rest) = rest.split_once('?')?;
    let payload_end = rest.find('?')?;
    let payload = &rest[..payload_end];
    if !rest[payload_end..].starts_with("?=") {
        return None;
    }
    let bytes = match encoding {
        "B" | "b" => LENIENT_BASE64.decode(payload).ok()?,
        "Q" | "q" => decode_q(payload)?,
        _ => return None,
    };
    // RFC 2231 5: a language may follow the charset.
    let charset_name = charset.split('*').next().unwrap_or(charset);
    Some(Word { charset: charset_name, bytes, length: text.len() - rest.len() + payload_end + 2 })
}

fn decode_q(payload: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(payload.len());
    let mut bytes = payload.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'_' => out.push(b' '),
            b'=' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                out.push((high * 16 + low) as u8);
            }
            other => out.push(other),
        }
    }
    Some(out)
}

/// Decodes bytes in their charset, or as UTF-8 if the charset is unknown. Without a charset or with ASCII, bytes that
/// are not UTF-8 are decoded as windows-1252. Invalid bytes become U+FFFD.
pub(crate) fn decode_charset(charset: Option<&str>, bytes: &[u8]) -> String {
    let decoder =
        charset.filter(|name| !is_ascii_name(name)).and_then(|name| charset_decoder(name.as_bytes()));
    match (decoder, std::str::from_utf8(bytes)) {
        (Some(decode), _) => decode(bytes),
        (None, Ok(text)) => text.to_owned(),
        // Not UTF-8, and the charset is absent or ASCII: old software that writes windows-1252.
        (None, Err(_)) if charset.is_none_or(is_ascii_name) => match charset_decoder(b"windows-1252") {
            Some(decode) => decode(bytes),
            None => String::from_utf8_lossy(bytes).into_owned(),
        },
        (None, Err(_)) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn is_ascii_name(charset: &str) -> bool {
    charset.eq_ignore_ascii_case("us-ascii") || charset.eq_ignore_ascii_case("ascii")
}

/// RFC 2047's two encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordEncoding {
    B,
    Q,
}

impl WordEncoding {
    pub(crate) fn shorter_for(text: &str) -> Self {
        let q_length: usize = text.bytes().map(q_width).sum();
        if q_length <= text.len().div_ceil(3) * 4 { Self::Q } else { Self::B }
    }

    /// Splits off the longest beginning of `text`, in whole characters, that takes at most `room` bytes when encoded.
    pub(crate) fn split(self, text: &str, room: usize) -> (&str, &str) {
        let mut used = 0;
        for (at, c) in text.char_indices() {
            used = match self {
                Self::B => (at + c.len_utf8()).div_ceil(3) * 4,
                Self::Q => {
                    used + text.as_bytes()[at..at + c.len_utf8()].iter().map(|b| q_width(*b)).sum::<usize>()
                }
            };
            if used > room {
                return text.split_at(at);
            }
        }
        (text, "")
    }

    /// Writes one encoded word and returns its length.
    pub(crate) fn write(self, text: &str, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        match self {
            Self::B => {
                out.extend_from_slice(b"=?utf-8?B?");
                out.extend_from_slice(STANDARD.encode(text).as_bytes());
            }
            Self::Q => {
                out.extend_from_slice(b"=?utf-8?Q?");
                for byte in text.bytes() {
                    match byte {
                        b' ' => out.push(b'_'),
                        plain if q_width(plain) == 1 => out.push(plain),
                        other => {
                            const HEX: &[u8; 16] = b"0123456789ABCDEF";
                            out.extend_from_slice(&[
                                b'=',
                                HEX[usize::from(other >> 4)],
                                HEX[usize::from(other & 15)],
                            ]);
                        }
                    }
                }
            }
        }
        out.extend_from_slice(b"?=");
        out.len() - start
    }
}

/// Length of a byte in Q encoding. Only bytes that RFC 2047 5 (3) allows in a display name are written literally.
fn q_width(byte: u8) -> usize {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'!' | b'*' | b'+' | b'-' | b'/' | b' ') {
        1
    } else {
        3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_words_are_decoded() {
        for (input, expected) in [
            ("plain", "plain"),
            ("=?utf-8?B?w7w=?=", "ü"),
            ("=?utf-8?b?w7w?=", "ü"),
            ("=?UTF-8?Q?a_=C3=BC?= b", "a ü b"),
            ("=?utf-8?Q?a?= =?utf-8?Q?b?=", "ab"),
            ("=?utf-8?Q?a?= x =?utf-8?Q?b?=", "a x b"),
            ("=?utf-8?Q?=C3?=\t=?utf-8?Q?=BC?=", "ü"),
            ("=?iso-8859-1*de?Q?=FC?=", "ü"),
            ("=?iso-8859-1?Q?=FC?= =?utf-8?Q?=C3=BC?=", "üü"),
            ("=?utf-8?Q?=41?=", "A"),
            ("=?utf-8?Q?a?==?utf-8?Q?b?=", "ab"),
            ("=?nonsense?Q?a?=", "a"),
        ] {
            assert_eq!(decode_words(input), expected, "{input}");
        }
    }

    #[test]
    fn text_that_is_no_encoded_word_stays() {
        for text in ["=?", "a =? b", "=?utf-8?X?a?=", "=?utf-8?Q?a", "=?utf-8?Q?=4?=", "=??Q?a?=", "=?=?=?"] {
            assert_eq!(decode_words(text), text);
        }
    }

    #[test]
    fn a_split_never_cuts_a_character() {
        for encoding in [WordEncoding::B, WordEncoding::Q] {
            let (head, tail) = encoding.split("aüß€😀", 8);
            assert!(!head.is_empty() && !tail.is_empty(), "{encoding:?}: {head} | {tail}");
            assert_eq!(format!("{head}{tail}"), "aüß€😀");
        }
    }
}
