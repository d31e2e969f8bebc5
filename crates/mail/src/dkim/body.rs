//! The relaxed body hash (RFC 6376 3.4.4), computed without copying the message.

use aws_lc_rs::digest::{Context, Digest, SHA256};
use memchr::memchr2;

/// Hashes a body. Ignores white space at line ends and empty lines at the end; other runs of white space count as one
/// space. Works in one pass; text that needs no change, which is nearly the whole body, is hashed in long pieces.
pub(super) fn hash_relaxed(body: &[u8]) -> Digest {
    let body = without_blank_end(body);
    let mut hash = Context::new(&SHA256);
    let (mut hashed, mut at) = (0, 0);
    while let Some(offset) = memchr2(b' ', b'\t', &body[at..]) {
        let start = at + offset;
        at = start + body[start..].iter().take_while(|b| is_white(**b)).count();
        let ends_line = body[at..].starts_with(b"\r\n");
        if !ends_line && body[start..at] == *b" " {
            continue;
        }
        hash.update(&body[hashed..start]);
        if !ends_line {
            hash.update(b" ");
        }
        hashed = at;
    }
    hash.update(&body[hashed..]);
    // Every line ends in CRLF, even the last one of a body without it; an empty body has no line.
    if !body.is_empty() {
        hash.update(b"\r\n");
    }
    hash.finish()
}

pub(super) fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The body up to the last byte that is not white space or a line ending.
fn without_blank_end(mut body: &[u8]) -> &[u8] {
    loop {
        let white = body.iter().rev().take_while(|b| is_white(**b)).count();
        body = &body[..body.len() - white];
        match body.strip_suffix(b"\r\n") {
            Some(shorter) => body = shorter,
            None => return body,
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::digest::digest;
    use proptest::prelude::*;

    use super::*;

    /// A literal implementation of RFC 6376 3.4.4: line by line, with copies.
    fn relaxed_line_by_line(body: &str) -> String {
        let mut lines: Vec<String> = Vec::new();
        for line in body.split("\r\n") {
            let mut reduced = line.replace('\t', " ");
            while reduced.contains("  ") {
                reduced = reduced.replace("  ", " ");
            }
            lines.push(reduced.strip_suffix(' ').unwrap_or(&reduced).to_owned());
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines.into_iter().map(|line| line + "\r\n").collect()
    }

    fn check(body: &str, canonical: &str) {
        assert_eq!(relaxed_line_by_line(body), canonical, "{body:?}");
        assert_eq!(
            hash_relaxed(body.as_bytes()).as_ref(),
            digest(&SHA256, canonical.as_bytes()).as_ref(),
            "{body:?}"
        );
    }

    #[test]
    fn rfc_example_passes() {
        // RFC 6376 3.4.5
        check(" C \r\nD \t E\r\n\r\n\r\n", " C\r\nD E\r\n");
    }

    #[test]
    fn bodies_without_text_count_as_empty() {
        for body in ["", "\r\n", "\r\n\r\n", " \t", " \r\n\t\r\n"] {
            check(body, "");
        }
    }

    #[test]
    fn a_missing_last_line_ending_is_added() {
        check("a", "a\r\n");
        check("a \t", "a\r\n");
    }

    #[test]
    fn lone_carriage_returns_and_line_feeds_are_text() {
        check("a \n b \r c", "a \n b \r c\r\n");
        check("a\r\r\n", "a\r\r\n");
    }

    proptest! {
        #[test]
        fn one_pass_gives_the_same_as_line_by_line(pieces in prop::collection::vec(
            prop::sample::select(vec!["a", "bc", " ", "\t", "  ", "\r\n", "\r", "\n", "é"]), 0..40)
        ) {
            let body = pieces.concat();
            let expected = digest(&SHA256, relaxed_line_by_line(&body).as_bytes());
            let found = hash_relaxed(body.as_bytes());
            prop_assert_eq!(found.as_ref(), expected.as_ref());
        }
    }
}
