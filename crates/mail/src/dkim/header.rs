//! The relaxed form of header fields (RFC 6376 3.4.2).

use super::body::is_white;

/// Appends `name:value` with the name in lower case, the value on one line and white space reduced. No line ending.
pub(super) fn push_relaxed(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend(name.trim_ascii_end().iter().map(u8::to_ascii_lowercase));
    out.push(b':');
    let start = out.len();
    let mut is_after_white = false;
    let mut rest = value;
    while let Some(byte) = rest.first() {
        // A fold or the end of the field: only the line break is removed.
        if let Some(after) = rest.strip_prefix(b"\r\n") {
            rest = after;
            continue;
        }
        rest = &rest[1..];
        if is_white(*byte) {
            is_after_white = true;
            continue;
        }
        if is_after_white && out.len() > start {
            out.push(b' ');
        }
        is_after_white = false;
        out.push(*byte);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn relaxed(name: &str, value: &str) -> String {
        let mut out = Vec::new();
        push_relaxed(name.as_bytes(), value.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rfc_example_passes() {
        // RFC 6376 3.4.5
        assert_eq!(relaxed("A", " X\r\n"), "a:X");
        assert_eq!(relaxed("B ", " Y\t\r\n\tZ  \r\n"), "b:Y Z");
    }

    #[test]
    fn an_empty_value_leaves_the_colon() {
        assert_eq!(relaxed("Subject", "\r\n"), "subject:");
        assert_eq!(relaxed("Subject", " \r\n\t\r\n"), "subject:");
    }

    proptest! {
        #[test]
        fn the_value_is_its_words_with_one_space_between(pieces in prop::collection::vec(
            prop::sample::select(vec!["a", "B:", " ", "\t", "\r\n ", "\r\n\t", "é"]), 0..30)
        ) {
            let value = pieces.concat() + "\r\n";
            let unfolded = value.replace("\r\n", "");
            let words: Vec<&str> = unfolded.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(relaxed("X-Name", &value), format!("x-name:{}", words.join(" ")));
        }
    }
}
