//! Line endings: mail has CRLF and nothing else (RFC 5322 2.3).

use std::borrow::Cow;

use postroad_model::is_crlf;

/// Text with CRLF line endings; a copy only if it had others.
pub(crate) fn to_crlf(text: &str) -> Cow<'_, str> {
    if is_crlf(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    // An eighth more is enough for lines of eight bytes on average.
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    // Bodies from JSON have LF alone. `split` on a character is a fast search.
    let has_cr = text.as_bytes().contains(&b'\r');
    let text =
        if has_cr { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { Cow::Borrowed(text) };
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push_str("\r\n");
        }
        out.push_str(line);
    }
    Cow::Owned(out)
}

/// The same for bytes that are already owned: handed back untouched if they are clean.
pub(crate) fn into_crlf(bytes: Vec<u8>) -> Vec<u8> {
    if is_crlf(&bytes) {
        return bytes;
    }
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 8);
    let mut rest = bytes.as_slice();
    while let Some(at) = rest.iter().position(|b| matches!(b, b'\r' | b'\n')) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(b"\r\n");
        let width = if rest[at..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[at + width..];
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_of_line_ending_becomes_crlf() {
        for (given, wanted) in [
            ("", ""),
            ("a", "a"),
            ("a\nb", "a\r\nb"),
            ("a\rb", "a\r\nb"),
            ("a\r\nb\r\n", "a\r\nb\r\n"),
            ("\n\r\n\r", "\r\n\r\n\r\n"),
            ("a\r\r\nb", "a\r\n\r\nb"),
            ("a\n\n", "a\r\n\r\n"),
        ] {
            assert_eq!(to_crlf(given), wanted, "{given:?}");
            assert_eq!(into_crlf(given.into()), wanted.as_bytes(), "{given:?}");
        }
    }

    #[test]
    fn clean_text_is_not_copied() {
        assert!(matches!(to_crlf("a\r\nb"), Cow::Borrowed(_)));
        let bytes = b"a\r\nb".to_vec();
        let address = bytes.as_ptr();
        let converted = into_crlf(bytes);
        assert_eq!(converted.as_ptr(), address);
    }

    proptest! {
        #[test]
        fn the_result_is_clean_and_both_ways_agree(text in "[a\r\n]{0,30}") {
            let converted = to_crlf(&text);
            prop_assert!(is_crlf(converted.as_bytes()));
            prop_assert_eq!(converted.as_bytes(), &into_crlf(text.clone().into_bytes())[..]);
        }
    }
}
