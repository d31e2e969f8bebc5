//! Byte ranges to overwrite in a page, with hashes that show the writer whether they are still unused.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use super::file::Needles;

/// A page other than the one to overwrite, as it was read: the trunk page that names a free page, or the page with the
/// row of an overflow page. While the guard is unchanged, the bytes to overwrite are unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Guard {
    pub(super) page: u32,
    pub(super) hash: u64,
}

/// Bytes of a page that are unused as long as the page and its guard are unchanged.
#[derive(Debug)]
pub(super) struct Overwrite {
    pub(super) page: u32,
    pub(super) hash: u64,
    pub(super) unused: Vec<Range<usize>>,
    pub(super) guard: Option<Guard>,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) overwrites: Vec<Overwrite>,
    /// Pages where a row still contains a text.
    pub(super) pages_in_use: u64,
    /// Number of pages whose use was not found, because their use changed during the search.
    pub(super) unclear: usize,
}

impl Plan {
    pub(super) fn add(
        &mut self,
        number: u32,
        data: &[u8],
        unused: Vec<Range<usize>>,
        guard: Option<Guard>,
        needles: &Needles<'_>,
    ) {
        let mut after = data.to_vec();
        for range in &unused {
            after[range.clone()].fill(0);
        }
        if needles.is_any_in(&after) {
            self.pages_in_use += 1;
        }
        if after != data {
            self.overwrites.push(Overwrite { page: number, hash: hash_of(data), unused, guard });
        }
    }
}

pub(super) fn hash_of(data: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hasher.finish()
}
