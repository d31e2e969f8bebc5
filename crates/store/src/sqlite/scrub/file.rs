//! Searches the database file for texts.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::Duration;

use memchr::memmem;

/// Bytes of the file that are read at a time.
const READ_BYTES: usize = 4 << 20;
/// Pause after each part, because other tasks use the disk too.
const READ_PAUSE: Duration = Duration::from_millis(2);

/// Texts in lower case; matched in any letter case.
pub(super) struct Needles<'a>(Vec<memmem::Finder<'a>>);

impl<'a> Needles<'a> {
    pub(super) fn new(texts: &'a [String]) -> Self {
        Self(texts.iter().map(|text| memmem::Finder::new(text.as_bytes())).collect())
    }

    /// Whether the data contains at least one of the texts.
    pub(super) fn is_any_in(&self, data: &[u8]) -> bool {
        let lower = data.to_ascii_lowercase();
        self.0.iter().any(|finder| finder.find(&lower).is_some())
    }
}

/// Numbers of the pages that contain one of the texts, or the beginning of one.
pub(super) fn find_pages(path: &Path, page_bytes: usize, needles: &Needles<'_>) -> std::io::Result<Vec<u32>> {
    let mut file = File::open(path)?;
    let longest = needles.0.iter().map(|finder| finder.needle().len()).max().unwrap_or(0);
    let mut part: Vec<u8> = Vec::with_capacity(READ_BYTES + longest);
    let (mut part_at, mut found) = (0_usize, Vec::new());
    loop {
        let read = file.by_ref().take(READ_BYTES as u64).read_to_end(&mut part)?;
        if read == 0 {
            found.sort_unstable();
            found.dedup();
            return Ok(found);
        }
        let start = part.len() - read;
        part[start..].make_ascii_lowercase();
        for finder in &needles.0 {
            let pages = finder.find_iter(&part).map(|at| ((part_at + at) / page_bytes + 1) as u32);
            found.extend(pages);
        }
        // A text may begin in this part and end in the next.
        let overlap = part.len().min(longest.saturating_sub(1));
        part_at += part.len() - overlap;
        part.drain(..part.len() - overlap);
        thread::sleep(READ_PAUSE);
    }
}
