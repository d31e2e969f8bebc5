//! Limit on the total size to which the reports of one message may decompress.

use super::ReportProblem;

/// Maximum number of bytes to which the reports of one message may decompress; reports of the largest receivers have a
/// few megabytes.
pub const UNPACKED_BYTES_MAX: usize = 16 << 20;

/// Bytes that may still be unpacked. The remainder shows how much was used.
#[derive(Debug)]
pub struct UnpackBudget {
    bytes_left: usize,
}

impl UnpackBudget {
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_left: bytes_max }
    }

    pub fn bytes_left(&self) -> usize {
        self.bytes_left
    }

    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), ReportProblem> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.unwrap_or(0);
        left.map(|_| ()).ok_or(ReportProblem::TooLarge)
    }
}

impl Default for UnpackBudget {
    fn default() -> Self {
        Self::new(UNPACKED_BYTES_MAX)
    }
}
