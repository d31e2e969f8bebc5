//! Unpacking an attachment of a report, within bounds: an absolute size, and a ratio that no honest report reaches.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::{DeflateDecoder, MultiGzDecoder};

use super::ReportProblem;
use super::zip::{self, Packing};

/// The largest receivers' reports on the largest senders have a few megabytes.
pub const UNPACKED_BYTES_MAX: usize = 20 << 20;
/// Rows of a report repeat themselves, but not that much. Deflate itself reaches 1,032.
const RATIO_MAX: usize = 200;
/// Up to here the ratio is not asked for: a tiny file of spaces harms nobody.
const RATIO_FREE_BYTES: usize = 256 << 10;

/// `None` if it is an archive without a file in it.
pub(super) fn unpack(bytes: &[u8]) -> Result<Option<Cow<'_, [u8]>>, ReportProblem> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return inflate(MultiGzDecoder::new(bytes), bytes.len()).map(|text| Some(Cow::Owned(text)));
    }
    if bytes.starts_with(b"PK\x03\x04") {
        let Some(file) = zip::find_report(bytes)? else { return Ok(None) };
        return match file.packing {
            Packing::Stored => plain(file.content).map(Some),
            Packing::Deflated => inflate(DeflateDecoder::new(file.content), file.content.len())
                .map(|text| Some(Cow::Owned(text))),
        };
    }
    plain(bytes).map(Some)
}

fn plain(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ReportProblem> {
    if bytes.len() > UNPACKED_BYTES_MAX { Err(ReportProblem::Bomb) } else { Ok(Cow::Borrowed(bytes)) }
}

/// Reads one byte more than is allowed, so that too much is seen without being unpacked.
fn inflate(reader: impl Read, packed_bytes: usize) -> Result<Vec<u8>, ReportProblem> {
    let by_ratio = packed_bytes.saturating_mul(RATIO_MAX).max(RATIO_FREE_BYTES);
    let bytes_max = by_ratio.min(UNPACKED_BYTES_MAX);
    let mut text = Vec::new();
    let outcome = reader.take(bytes_max as u64 + 1).read_to_end(&mut text);
    if text.len() > bytes_max {
        return Err(ReportProblem::Bomb);
    }
    outcome.map_err(|_| ReportProblem::Damaged("the compressed data is broken"))?;
    Ok(text)
}
