//! The file in a zipped report. This is our own code, because reports need only a small part of the format, and
//! features that are not implemented (encryption, other methods, ZIP64, links) cannot be attacked.

use super::ReportProblem;

const END_OF_CENTRAL_DIRECTORY_BYTES: usize = 22;
const CENTRAL_HEADER_BYTES: usize = 46;
const LOCAL_HEADER_BYTES: usize = 30;
/// Longest archive comment, which follows the end-of-central-directory record.
const COMMENT_BYTES_MAX: usize = 0xffff;
/// Maximum number of entries that are examined; the archive of a report has one.
const ENTRIES_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Stored,
    Deflated,
}

#[derive(Debug)]
pub(super) struct PackedFile<'a> {
    pub(super) compression: Compression,
    pub(super) content: &'a [u8],
}

/// The first file named like a report. The sizes come from the central directory: files written as a stream have no
/// sizes in their own header.
pub(super) fn find_report(bytes: &[u8]) -> Result<Option<PackedFile<'_>>, ReportProblem> {
    let damaged = ReportProblem::Damaged("the zip archive has no valid central directory");
    let end = find_end_of_central_directory(bytes).ok_or(damaged)?;
    let mut at = read_number(bytes, end + 16, 4).ok_or(damaged)?;
    for _ in 0..read_number(bytes, end + 10, 2).ok_or(damaged)?.min(ENTRIES_MAX) {
        let entry = bytes.get(at..).filter(|entry| entry.starts_with(b"PK\x01\x02")).ok_or(damaged)?;
        let field = |from, length| read_number(entry, from, length).ok_or(damaged);
        let name_bytes = field(28, 2)?;
        let name = entry.get(CENTRAL_HEADER_BYTES..CENTRAL_HEADER_BYTES + name_bytes).ok_or(damaged)?;
        if is_report(name) {
            return read_file(bytes, field(42, 4)?, field(20, 4)?, field(10, 2)?).map(Some);
        }
        at += CENTRAL_HEADER_BYTES + name_bytes + field(30, 2)? + field(32, 2)?;
    }
    Ok(None)
}

fn read_file(
    bytes: &[u8],
    at: usize,
    content_bytes: usize,
    method: usize,
) -> Result<PackedFile<'_>, ReportProblem> {
    let damaged = ReportProblem::Damaged("the file in the zip archive is cut off");
    let compression = match method {
        0 => Compression::Stored,
        8 => Compression::Deflated,
        _ => return Err(ReportProblem::Damaged("the zip archive uses an unsupported compression method")),
    };
    let local = bytes.get(at..).filter(|local| local.starts_with(b"PK\x03\x04")).ok_or(damaged)?;
    let name_and_extra_bytes =
        read_number(local, 26, 2).zip(read_number(local, 28, 2)).map(|(name, extra)| name + extra);
    let start = LOCAL_HEADER_BYTES + name_and_extra_bytes.ok_or(damaged)?;
    let content = local.get(start..start + content_bytes).ok_or(damaged)?;
    Ok(PackedFile { compression, content })
}

fn find_end_of_central_directory(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(END_OF_CENTRAL_DIRECTORY_BYTES)?;
    let first = last.saturating_sub(COMMENT_BYTES_MAX);
    (first..=last).rev().find(|at| bytes[*at..].starts_with(b"PK\x05\x06"))
}

fn is_report(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(b".xml") || name.ends_with(b".json")
}

/// A little-endian number of up to four bytes.
fn read_number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let field = bytes.get(at..at + length)?;
    Some(field.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}
