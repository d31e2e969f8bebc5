//! Writes one header field: folding at 78 columns, encoded words, quoted names. Any text without control characters
//! results in exactly one field.

use std::borrow::Cow;
use std::ops::Range;

use crate::encoded_word::{PAYLOAD_BYTES_MAX, WORD_OVERHEAD_BYTES, WordEncoding, decode_words};

/// RFC 5322 2.1.1: lines should stay within 78 columns and must stay within 998.
const COLUMNS_PREFERRED: usize = 78;
const COLUMNS_MAX: usize = 998;
/// RFC 2047 2: a line with an encoded word has at most 76 columns.
const ENCODED_COLUMNS_MAX: usize = 76;
/// The longest word that `text` and `mixed_text` do not encode. Leaves room up to 998 columns for the field's name and
/// for text that `glue` attaches.
const ATOM_BYTES_MAX: usize = 900;

/// A field being written. `atom` and `encoded` write the white space before their text.
#[derive(Debug)]
pub(crate) struct HeaderLine<'a> {
    out: &'a mut Vec<u8>,
    column: usize,
    /// Column limit of the current line; lower once the line has an encoded word.
    limit: usize,
    /// Whether the next text needs no space before it: after `Name: `, and after the opening of `encoded_between`.
    needs_no_space: bool,
}

impl<'a> HeaderLine<'a> {
    /// `name` must be a valid field name.
    pub(crate) fn new(out: &'a mut Vec<u8>, name: &str) -> Self {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        Self { out, column: name.len() + 2, limit: COLUMNS_PREFERRED, needs_no_space: true }
    }

    pub(crate) fn finish(self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// Text that is never folded inside; the caller ensures that the text has no control characters.
    pub(crate) fn atom(&mut self, text: &str) {
        let room = if self.needs_no_space { COLUMNS_MAX } else { self.limit };
        self.space(text.len(), room);
        self.glue(text);
    }

    /// Text that follows without white space.
    pub(crate) fn glue(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.column += text.len();
    }

    /// `text` as one or more encoded words.
    pub(crate) fn encoded(&mut self, text: &str) {
        let encoding = WordEncoding::shorter_for(text);
        let mut rest = text;
        while !rest.is_empty() {
            let space = usize::from(!self.needs_no_space);
            let room = ENCODED_COLUMNS_MAX
                .saturating_sub(self.column + space + WORD_OVERHEAD_BYTES)
                .min(PAYLOAD_BYTES_MAX);
            let (mut head, mut tail) = encoding.split(rest, room);
            // A few characters at the end of a line are not worth a separate word.
            if !tail.is_empty() && room < PAYLOAD_BYTES_MAX / 3 {
                // Always folds.
                self.space(COLUMNS_MAX, 0);
                (head, tail) = encoding.split(rest, PAYLOAD_BYTES_MAX);
            } else {
                // Never folds.
                self.space(0, COLUMNS_MAX);
            }
            self.limit = ENCODED_COLUMNS_MAX;
            self.column += encoding.write(head, self.out);
            rest = tail;
        }
    }

    /// `opening`, encoded words, `closing`, with no white space between them.
    pub(crate) fn encoded_between(&mut self, opening: &str, text: &str, closing: &str) {
        // Require room for a useful word: otherwise a fold could separate the word from the opening.
        self.space(opening.len() + WORD_OVERHEAD_BYTES + PAYLOAD_BYTES_MAX / 2, self.limit);
        self.glue(opening);
        self.needs_no_space = true;
        self.encoded(text);
        self.needs_no_space = false;
        self.glue(closing);
    }

    /// Text folded at its spaces; in encoded words if it is not ASCII or a word is too long for a line.
    pub(crate) fn text(&mut self, text: &str) {
        if text.is_ascii() && atoms(text).all(|atom| atom.len() <= ATOM_BYTES_MAX) {
            atoms(text).for_each(|atom| self.atom(atom));
        } else {
            self.encoded(text);
        }
    }

    /// Text whose ASCII words stay literal, so that programs can read addresses and links in it.
    pub(crate) fn mixed_text(&mut self, text: &str) {
        // Adjacent words are encoded together: readers drop the space between two encoded words.
        let mut run: Option<Range<usize>> = None;
        for range in atom_ranges(text) {
            let atom = &text[range.clone()];
            if !atom.is_ascii() || atom.len() > ATOM_BYTES_MAX {
                run = Some(run.map_or(range.start, |run| run.start)..range.end);
                continue;
            }
            if let Some(run) = run.take() {
                self.encoded(&text[run]);
            }
            self.atom(atom);
        }
        if let Some(run) = run {
            self.encoded(&text[run]);
        }
    }

    /// A display name (RFC 5322 `phrase`): bare words, a quoted string, or encoded words.
    pub(crate) fn phrase(&mut self, name: &str) {
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&b);
        if !name.is_ascii() || name.contains("=?") {
            self.encoded(name);
        } else if atoms(name).all(|atom| !atom.is_empty() && atom.bytes().all(is_word)) {
            self.text(name);
        } else {
            // A long quoted string is folded inside the quotes: readers remove only the line break.
            self.text(&quoted(name));
        }
    }

    /// Writes the white space before a text of this length: a fold if the text would pass `limit` columns.
    fn space(&mut self, length: usize, limit: usize) {
        if self.column + usize::from(!self.needs_no_space) + length > limit {
            self.out.extend_from_slice(b"\r\n ");
            self.column = 1;
            self.limit = COLUMNS_PREFERRED;
        } else if !self.needs_no_space {
            self.out.push(b' ');
            self.column += 1;
        }
        self.needs_no_space = false;
    }
}

/// The text as a quoted string (RFC 5322 3.2.4).
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

fn atoms(text: &str) -> impl Iterator<Item = &str> {
    atom_ranges(text).map(|range| &text[range])
}

/// The pieces between single spaces. A fold at a longer run of spaces would be reduced to one space by some readers.
fn atom_ranges(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let is_break = move |at: usize| {
        bytes[at] == b' '
            && at > 0
            && !matches!(bytes[at - 1], b' ' | b'\t')
            && bytes.get(at + 1).is_some_and(|next| !matches!(next, b' ' | b'\t'))
    };
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let end = (from..bytes.len()).find(|at| is_break(*at));
        start = end.map(|at| at + 1);
        Some(from..end.unwrap_or(bytes.len()))
    })
}

/// Replaces each control character by a space, so that text cannot start a new line or hide something.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        Cow::Owned(text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Like `clean`, but first decodes encoded words that a client library made, so that they are encoded properly.
pub(crate) fn clean_decoded(text: &str) -> Cow<'_, str> {
    match decode_words(text) {
        Cow::Borrowed(text) => clean(text),
        Cow::Owned(text) => Cow::Owned(clean(&text).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, write: impl FnOnce(&mut HeaderLine<'_>)) -> String {
        let mut out = Vec::new();
        let mut line = HeaderLine::new(&mut out, name);
        write(&mut line);
        line.finish();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_with_encoded_words_have_at_most_76_columns() {
        let lengths = (1..50).flat_map(|first| (50..64).map(move |both| (first, both - first)));
        for (first, second) in lengths {
            let text = format!("ü{} {}", "a".repeat(first), "b".repeat(second));
            for name in ["X", "X-Name-Of-Thirty-Characters-12", &"x".repeat(76)] {
                let field = written(name, |line| line.mixed_text(&text));
                let is_short = |line: &str| !line.contains("=?") || line.len() <= 76;
                assert!(field.split("\r\n").all(is_short), "{field}");
                let value = field.split_once(": ").unwrap().1.replace("\r\n", "");
                assert_eq!(decode_words(value.trim()), text);
            }
        }
    }

    #[test]
    fn a_run_of_spaces_is_not_folded() {
        let text = format!("{}  {} c", "a".repeat(60), "b".repeat(30));
        assert_eq!(written("X", |line| line.text(&text)), format!("X: {text}\r\n").replace(" c", "\r\n c"));
    }

    #[test]
    fn names_are_words_or_quoted_or_encoded() {
        for (name, expected) in [
            ("Ann Lee", "Ann Lee"),
            ("Lee, Ann", "\"Lee, Ann\""),
            ("A  B", "\"A  B\""),
            ("a \"b\" \\c", "\"a \\\"b\\\" \\\\c\""),
            ("=?utf-8?q?x", "=?utf-8?B?PT91dGYtOD9xP3g=?="),
            ("Zoë", "=?utf-8?Q?Zo=C3=AB?="),
        ] {
            assert_eq!(written("X", |line| line.phrase(name)), format!("X: {expected}\r\n"));
        }
    }
}
