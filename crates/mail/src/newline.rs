//! Line endings: mail uses only CRLF (RFC 5322 2.3).

use postroad_model::is_crlf;

/// Passes a text on in pieces with CRLF line endings. A text that already has them is one piece and is not copied. Any
/// other text is passed in pieces of whole lines. Only short lines are copied, so that megabytes are never in memory
/// twice. A piece may begin with the line break of the long line before it.
pub(crate) fn crlf_pieces(text: &str, mut take: impl FnMut(&[u8])) {
    const PIECE_BYTES: usize = 64 << 10;
    if is_crlf(text.as_bytes()) {
        return take(text.as_bytes());
    }
    let mut piece = Vec::with_capacity(PIECE_BYTES.min(text.len() * 2));
    let mut lines = lines(text).peekable();
    while let Some(line) = lines.next() {
        if line.len() >= PIECE_BYTES {
            if !piece.is_empty() {
                take(&piece);
                piece.clear();
            }
            take(line.as_bytes());
        } else {
            piece.extend_from_slice(line.as_bytes());
        }
        if lines.peek().is_some() {
            piece.extend_from_slice(b"\r\n");
            if piece.len() >= PIECE_BYTES / 2 {
                take(&piece);
                piece.clear();
            }
        }
    }
    if !piece.is_empty() {
        take(&piece);
    }
}

/// Length of the text with CRLF line endings.
pub(crate) fn crlf_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let count = |wanted: u8| memchr::memchr_iter(wanted, bytes).count();
    let pairs = memchr::memmem::find_iter(bytes, b"\r\n").count();
    bytes.len() + count(b'\r') + count(b'\n') - 2 * pairs
}

/// The lines of a text without their endings, which are CRLF, CR or LF.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = memchr::memchr2(b'\r', b'\n', text.as_bytes()) else {
            rest = None;
            return Some(text);
        };
        let width = if text.as_bytes()[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = Some(&text[end + width..]);
        Some(&text[..end])
    })
}

/// Number of bytes by which a message grows if its line endings become CRLF.
pub fn missing_line_break_bytes(bytes: &[u8]) -> usize {
    if is_crlf(bytes) {
        return 0;
    }
    let count = |wanted: u8| memchr::memchr_iter(wanted, bytes).count();
    count(b'\r') + count(b'\n') - 2 * memchr::memmem::find_iter(bytes, b"\r\n").count()
}

/// Converts all line endings to CRLF; returns the bytes unchanged if every line ending is CRLF already.
pub(crate) fn into_crlf(bytes: Vec<u8>) -> Vec<u8> {
    let missing = missing_line_break_bytes(&bytes);
    if missing == 0 {
        return bytes;
    }
    let mut writer = CrlfWriter::with_capacity(bytes.len() + missing);
    writer.push(&bytes);
    writer.finish()
}

/// Collects a message that comes in pieces, and turns bare CR and LF into CRLF.
#[derive(Debug)]
pub struct CrlfWriter {
    out: Vec<u8>,
    /// Whether the last byte was a CR, for which a CRLF is already in `out`.
    is_after_cr: bool,
}

impl CrlfWriter {
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), is_after_cr: false }
    }

    pub fn push(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while !rest.is_empty() {
            if std::mem::take(&mut self.is_after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', rest);
            self.out.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { return };
            self.out.extend_from_slice(b"\r\n");
            self.is_after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
        }
    }

    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn converted(text: &str) -> String {
        let mut out = Vec::new();
        crlf_pieces(text, |piece| out.extend_from_slice(piece));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn pieces_of_long_lines_and_of_many_lines_join_to_the_whole_text() {
        let long = "x".repeat(70_000);
        for text in [format!("{long}\n{long}\n\n.\n"), "a\n".repeat(100_000), format!("a\n{long}")] {
            assert_eq!(converted(&text), text.replace('\n', "\r\n"));
        }
    }

    #[test]
    fn every_kind_of_line_ending_becomes_crlf() {
        for (input, wanted) in [
            ("", ""),
            ("a", "a"),
            ("a\nb", "a\r\nb"),
            ("a\rb", "a\r\nb"),
            ("a\r\nb\r\n", "a\r\nb\r\n"),
            ("\n\r\n\r", "\r\n\r\n\r\n"),
            ("a\r\r\nb", "a\r\n\r\nb"),
            ("a\n\n", "a\r\n\r\n"),
        ] {
            assert_eq!(converted(input), wanted, "{input:?}");
            assert_eq!(crlf_length(input), wanted.len(), "{input:?}");
            assert_eq!(into_crlf(input.into()), wanted.as_bytes(), "{input:?}");
        }
    }

    #[test]
    fn text_with_crlf_is_not_copied() {
        let text = "a\r\nb";
        crlf_pieces(text, |piece| assert_eq!(piece.as_ptr(), text.as_ptr()));
        let bytes = b"a\r\nb".to_vec();
        let address = bytes.as_ptr();
        let converted = into_crlf(bytes);
        assert_eq!(converted.as_ptr(), address);
    }

    proptest! {
        #[test]
        fn all_conversions_give_the_same_text_with_crlf(text in "[a\r\n]{0,30}") {
            let converted = converted(&text);
            prop_assert!(is_crlf(converted.as_bytes()));
            prop_assert_eq!(converted.len(), crlf_length(&text));
            prop_assert_eq!(converted.as_bytes(), &into_crlf(text.clone().into_bytes())[..]);
            let mut writer = CrlfWriter::with_capacity(0);
            text.as_bytes().chunks(3).for_each(|piece| writer.push(piece));
            prop_assert_eq!(converted.as_bytes(), &writer.finish()[..]);
        }
    }
}
