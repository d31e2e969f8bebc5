//! Incremental CSV reader: keeps one record in memory, however long the text or one of its lines is.

use csv_core::{ReadFieldResult, Reader};

/// Maximum number of fields kept of a record.
const FIELDS_MAX: usize = 50;
/// Maximum number of bytes kept of a field; an address and its details have fewer.
const FIELD_BYTES_MAX: usize = 4 << 10;

/// One record with trimmed fields.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Line at which the record begins, counted from 1.
    pub(super) line: u64,
    /// The first fields, at most `FIELDS_MAX`.
    pub(super) fields: Vec<String>,
    /// Number of all fields.
    pub(super) count: usize,
    /// Whether a field that is not kept has text.
    pub(super) has_unkept_text: bool,
    /// Whether a field was too long, so that only its end is kept.
    pub(super) is_too_long: bool,
}

/// Reads records and skips empty ones. Lines end with CR, LF or both.
pub(super) struct Records<'a> {
    rest: &'a [u8],
    reader: Reader,
    field: Vec<u8>,
    /// Line number at the start of `rest`.
    line: u64,
    /// Last byte before `rest`; 0 at the start of the text.
    before: u8,
}

impl<'a> Records<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let rest = text.strip_prefix('\u{feff}').unwrap_or(text).as_bytes();
        Self { rest, reader: Reader::new(), field: vec![0; FIELD_BYTES_MAX], line: 1, before: 0 }
    }

    fn advance(&mut self, bytes: usize) {
        for byte in &self.rest[..bytes] {
            // CR LF is one line end.
            if *byte == b'\r' || (*byte == b'\n' && self.before != b'\r') {
                self.line += 1;
            }
            self.before = *byte;
        }
        self.rest = &self.rest[bytes..];
    }

    /// Reads to the end of a field. Returns the field's text, whether the field was too long so that only its end is
    /// kept, and whether it is the last of its record.
    fn next_field(&mut self) -> Option<(String, bool, bool)> {
        let (mut length, mut is_cut) = (0, false);
        loop {
            let (result, read, written) = self.reader.read_field(self.rest, &mut self.field[length..]);
            self.advance(read);
            length += written;
            match result {
                // At the end of the text, the next call without input ends the record.
                ReadFieldResult::InputEmpty => {}
                ReadFieldResult::OutputFull => {
                    is_cut = true;
                    length = 0;
                }
                ReadFieldResult::Field { record_end } => {
                    let text = String::from_utf8_lossy(&self.field[..length]);
                    let text = text.trim().replace("\r\n", "\n").replace('\r', "\n");
                    return Some((text, is_cut, record_end));
                }
                ReadFieldResult::End => return None,
            }
        }
    }

    fn next_record(&mut self) -> Option<Record> {
        let ends = self.rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.advance(ends);
        let mut record = Record {
            line: self.line,
            fields: Vec::new(),
            count: 0,
            has_unkept_text: false,
            is_too_long: false,
        };
        loop {
            let (text, is_cut, is_last) = self.next_field()?;
            record.count += 1;
            record.is_too_long |= is_cut;
            if record.fields.len() < FIELDS_MAX {
                record.fields.push(text);
            } else {
                record.has_unkept_text |= is_cut || !text.is_empty();
            }
            if is_last {
                return Some(record);
            }
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            let record = self.next_record()?;
            let is_blank =
                record.fields.iter().all(String::is_empty) && !record.has_unkept_text && !record.is_too_long;
            if !is_blank {
                return Some(record);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_records_and_long_fields_are_cut() {
        let text = format!(
            "{}x\n{}\n\"{}\",b\nlast",
            ",".repeat(1_000_000),
            "y".repeat(1_000_000),
            "z\n".repeat(9_000)
        );
        let records: Vec<Record> = Records::of(&text).collect();
        let seen: Vec<_> = records
            .iter()
            .map(|one| (one.line, one.fields.len(), one.count, one.has_unkept_text, one.is_too_long))
            .collect();
        // Line, fields that are kept, all fields, text in a field that is not kept, a field that is too long.
        let expected = [
            (1, 50, 1_000_001, true, false),
            (2, 1, 1, false, true),
            (3, 2, 2, false, true),
            (9_004, 1, 1, false, false),
        ];
        assert_eq!(seen, expected);
    }
}
