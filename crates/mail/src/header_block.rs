//! The header section of a message or part, cut into fields without interpreting them.

use std::borrow::Cow;

/// One header field: a line with its continuation lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    /// Empty if the line has no colon.
    pub(crate) name: &'a [u8],
    /// Everything after the colon, with folds and the last line ending.
    pub(crate) value: &'a [u8],
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl<'a> Field<'a> {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The value on one line, without outer white space. Bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn unfolded(&self) -> Cow<'a, str> {
        unfold(String::from_utf8_lossy(self.value))
    }
}

/// Removes folds, and white space around the value. RFC 5322 2.2.3: a fold is a line break before white space, and only
/// the break is removed.
pub(crate) fn unfold(value: Cow<'_, str>) -> Cow<'_, str> {
    const WHITE: [char; 4] = [' ', '\t', '\r', '\n'];
    match value {
        Cow::Borrowed(value) => {
            let value = value.trim_matches(WHITE);
            if value.contains(['\r', '\n']) {
                Cow::Owned(value.replace(['\r', '\n'], ""))
            } else {
                Cow::Borrowed(value)
            }
        }
        Cow::Owned(value) => Cow::Owned(value.trim_matches(WHITE).replace(['\r', '\n'], "")),
    }
}

/// Walks the fields of a header section, which ends at an empty line or at the end of the bytes.
#[derive(Debug)]
pub(crate) struct HeaderBlock<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> HeaderBlock<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The bytes after the header section. Valid after iteration has ended.
    pub(crate) fn body(&self) -> &'a [u8] {
        &self.bytes[self.body_start()..]
    }

    /// Position at which the body begins.
    pub(crate) fn body_start(&self) -> usize {
        self.at + empty_line_bytes(&self.bytes[self.at..]).unwrap_or(0)
    }

    /// Position at which the fields end, before the empty line.
    pub(crate) fn fields_end(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for HeaderBlock<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() || empty_line_bytes(rest).is_some() {
            return None;
        }
        let mut length = line_length(rest);
        while rest[length..].first().is_some_and(|b| matches!(b, b' ' | b'\t')) {
            length += line_length(&rest[length..]);
        }
        let field = &rest[..length];
        let colon = field.iter().position(|b| matches!(b, b':' | b'\n')).filter(|at| field[*at] == b':');
        let (name, value) = match colon {
            Some(colon) => (&field[..colon], &field[colon + 1..]),
            None => (&field[..0], field),
        };
        let start = self.at;
        self.at += length;
        Some(Field { name, value, start, end: self.at })
    }
}

fn line_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1)
}

/// The length of the line ending, if the first line is empty.
fn empty_line_bytes(bytes: &[u8]) -> Option<usize> {
    [&b"\r\n"[..], b"\n"].into_iter().find(|ending| bytes.starts_with(ending)).map(<[u8]>::len)
}
