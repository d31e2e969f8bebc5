//! Reader of an attachment that may be a report: detects the compression, and decompresses while it is read. `open`
//! decompresses nothing, so the caller can charge every byte to its budget.

use std::io::Read;

use flate2::bufread::{DeflateDecoder, MultiGzDecoder};

use super::ReportProblem;
use super::zip::{self, Compression};

/// Maximum number of unpacked bytes per packed byte. Reports are repetitive, but real ones stay below 60.
const RATIO_MAX: usize = 100;
/// Up to this unpacked size the ratio does not matter: a small file of spaces is harmless.
const RATIO_FREE_BYTES: usize = 256 << 10;

/// The content of an attachment, unpacked while it is read.
pub(super) enum AttachmentReader<'a> {
    Plain(&'a [u8]),
    Gzip(Box<MultiGzDecoder<&'a [u8]>>),
    Deflate(Box<DeflateDecoder<&'a [u8]>>),
}

impl<'a> AttachmentReader<'a> {
    /// Opens an attachment; `None` if it is an archive without a report in it.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Option<Self>, ReportProblem> {
        if bytes.starts_with(&[0x1f, 0x8b]) {
            return Ok(Some(Self::Gzip(Box::new(MultiGzDecoder::new(bytes)))));
        }
        if bytes.starts_with(b"PK\x03\x04") {
            let Some(file) = zip::find_report(bytes)? else { return Ok(None) };
            return Ok(Some(match file.compression {
                Compression::Stored => Self::Plain(file.content),
                Compression::Deflated => Self::Deflate(Box::new(DeflateDecoder::new(file.content))),
            }));
        }
        Ok(Some(Self::Plain(bytes)))
    }
}

impl Read for AttachmentReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(bytes) => bytes.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Deflate(decoder) => decoder.read(buffer),
        }
    }
}

/// The largest size to which this many packed bytes may decompress.
pub(super) fn unpacked_bytes_max(packed_bytes: usize) -> usize {
    packed_bytes.saturating_mul(RATIO_MAX).max(RATIO_FREE_BYTES)
}
