//! Finds the bytes of a page of the database file that no row uses. See "Database File Format" in SQLite's
//! documentation.

use std::ops::Range;

/// Bytes of the file's header, which the first page begins with.
const FILE_HEADER_BYTES: usize = 100;
/// Offset in the file's header of the number of the first trunk page of the freelist.
const FIRST_TRUNK_AT: usize = 32;
/// A freeblock begins with the offset of the next freeblock, and its own size.
const FREEBLOCK_HEADER_BYTES: usize = 4;

/// Unused ranges of a b-tree page; `None` if it is no b-tree page, or an inconsistent one.
pub(super) fn unused_ranges(page: &[u8], number: u32) -> Option<Vec<Range<usize>>> {
    let header = if number == 1 { FILE_HEADER_BYTES } else { 0 };
    // The type of the page: an interior page of an index or table, or a leaf, whose header is shorter.
    let header_bytes = match page.get(header)? {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return None,
    };
    let cells = usize::from(u16_at(page, header + 3)?);
    let content = match u16_at(page, header + 5)? {
        0 => 65_536,
        at => usize::from(at),
    };
    let pointers_end = header + header_bytes + 2 * cells;
    if pointers_end > content || content > page.len() {
        return None;
    }
    let gap = pointers_end..content;
    let mut unused = vec![gap];
    let mut block = usize::from(u16_at(page, header + 1)?);
    let mut last_end = content;
    while block != 0 {
        let (next, size) = (usize::from(u16_at(page, block)?), usize::from(u16_at(page, block + 2)?));
        let end = block + size;
        // The freeblocks are in ascending order, and lie among the cells.
        if block < last_end || size < FREEBLOCK_HEADER_BYTES || end > page.len() {
            return None;
        }
        unused.push(block + FREEBLOCK_HEADER_BYTES..end);
        (block, last_end) = (next, end);
    }
    Some(unused)
}

/// Number of the first trunk page of the freelist; 0 for none.
pub(super) fn first_trunk(first_page: &[u8]) -> Option<u32> {
    u32_at(first_page, FIRST_TRUNK_AT)
}

/// A trunk page of the freelist: the next trunk page, the free pages (leaves) it names, and its unused bytes.
pub(super) fn read_trunk(page: &[u8]) -> Option<(u32, Vec<u32>, Range<usize>)> {
    let (next, count) = (u32_at(page, 0)?, u32_at(page, 4)? as usize);
    let end = count.checked_mul(4)?.checked_add(8)?;
    let named = page.get(8..end)?;
    let leaves = named.chunks_exact(4).filter_map(|bytes| u32_at(bytes, 0)).collect();
    Some((next, leaves, end..page.len()))
}

/// Whether an overflow page is the last page of its value: it names no next page.
pub(super) fn is_last_overflow(page: &[u8]) -> bool {
    u32_at(page, 0) == Some(0)
}

fn u16_at(page: &[u8], at: usize) -> Option<u16> {
    let bytes = page.get(at..at + 2)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

fn u32_at(page: &[u8], at: usize) -> Option<u32> {
    let bytes = page.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf of a table: two cells, one freeblock between them.
    fn leaf() -> Vec<u8> {
        let mut page = vec![b'x'; 512];
        // Type of the page, first freeblock (456), number of cells, begin of the cells (400), fragments, cell offsets.
        page[..12].copy_from_slice(&[13, 1, 0xc8, 0, 2, 1, 0x90, 0, 1, 0x90, 1, 0xe0]);
        // At 456: the only freeblock, 24 bytes.
        page[456..460].copy_from_slice(&[0, 0, 0, 24]);
        page
    }

    #[test]
    fn gap_and_freeblocks_are_unused() {
        assert_eq!(unused_ranges(&leaf(), 2), Some(vec![12..400, 460..480]));
    }

    #[test]
    fn overflow_pages_and_inconsistent_b_tree_pages_have_no_known_unused_ranges() {
        let mut overflow = leaf();
        overflow[0] = 0;
        assert_eq!(unused_ranges(&overflow, 2), None);
        let mut damaged = leaf();
        // The freeblock's size, 512, is beyond the end of the page.
        damaged[458..460].copy_from_slice(&[2, 0]);
        assert_eq!(unused_ranges(&damaged, 2), None);
        let mut circle = leaf();
        // The next freeblock is the freeblock itself.
        circle[456..458].copy_from_slice(&[1, 0xc8]);
        assert_eq!(unused_ranges(&circle, 2), None);
        assert_eq!(unused_ranges(&[], 1), None);
    }

    #[test]
    fn a_trunk_page_names_the_next_trunk_page_and_its_leaves() {
        let mut page = vec![b'x'; 64];
        page[..16].copy_from_slice(&[0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
        assert_eq!(read_trunk(&page), Some((9, vec![3, 4], 16..64)));
        // More leaves than fit into the page.
        page[4] = 255;
        assert_eq!(read_trunk(&page), None);
    }
}
