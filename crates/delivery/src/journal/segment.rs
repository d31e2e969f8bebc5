//! One file of the journal, open for marks.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const NAME_START: &str = "flights-";
const NAME_END: &str = ".journal";
const CHECK_NAME: &str = "check";

#[derive(Debug)]
pub(super) struct Segment {
    number: u64,
    file: File,
    /// Length of complete records.
    length: u64,
}

impl Segment {
    /// Creates a new file. Never opens an existing one, which may end in half a record.
    pub(super) fn create(folder: &Path, number: u64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create_new(true).mode(0o600).open(segment_path(folder, number))?;
        Ok(Self { number, file, length: 0 })
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Appends a record with one write: either the kernel has the whole record, or the caller gets an error.
    pub(super) fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.try_write(record)?;
        self.length += record.len() as u64;
        Ok(())
    }

    /// Writes a record after the last one; the caller then counts it or truncates it again.
    pub(super) fn try_write(&mut self, record: &[u8]) -> io::Result<()> {
        let written = loop {
            match self.file.write(record) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        // Part of a record may fit on a full disk.
        if written < record.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// Truncates everything after the last complete record.
    pub(super) fn truncate(&mut self) -> io::Result<()> {
        self.file.set_len(self.length)
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        if self.length > 0 {
            self.file.set_len(0)?;
            self.length = 0;
        }
        Ok(())
    }
}

/// Fails if no new segment can be created. Creates and removes a file whose name recovery ignores.
pub(super) fn try_create(folder: &Path) -> io::Result<()> {
    let path = folder.join(CHECK_NAME);
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    std::fs::remove_file(path)
}

/// File name of a segment. The number is padded, so that names sort by number.
pub(super) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{NAME_START}{number:020}{NAME_END}"))
}

/// The number in a segment's file name; `None` for other files.
pub(super) fn segment_number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(NAME_START)?.strip_suffix(NAME_END)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_and_not_a_record() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut segment = Segment { number: 1, file, length: 0 };
        assert_eq!(segment.append(b"mark").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(segment.length(), 0);
    }
}
