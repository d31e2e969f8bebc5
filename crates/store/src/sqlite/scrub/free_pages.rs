//! Finds out which of the wanted pages are free, from the freelist of the database file.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use rusqlite::Connection;

use super::overwrite::{Guard, hash_of};
use super::{page, read_page};
use crate::error::StoreError;

/// A free page: its unused bytes, and the trunk page of the freelist that names it.
pub(super) struct FreePage {
    pub(super) unused: Range<usize>,
    /// `None` for a trunk page.
    pub(super) guard: Option<Guard>,
}

/// The free pages among the wanted ones.
pub(super) fn find(connection: &Connection, wanted: &[u32]) -> Result<HashMap<u32, FreePage>, StoreError> {
    let wanted: HashSet<u32> = wanted.iter().copied().collect();
    let (mut free, mut seen) = (HashMap::new(), HashSet::new());
    if wanted.is_empty() {
        return Ok(free);
    }
    let first = read_page(connection, 1)?.and_then(|page| page::first_trunk(&page));
    let mut trunk = first.unwrap_or(0);
    while trunk != 0 && seen.insert(trunk) {
        let Some(data) = read_page(connection, trunk)? else { break };
        let Some((next, leaves, unused)) = page::read_trunk(&data) else { break };
        let guard = Guard { page: trunk, hash: hash_of(&data) };
        for leaf in leaves.into_iter().filter(|leaf| wanted.contains(leaf)) {
            free.insert(leaf, FreePage { unused: 0..data.len(), guard: Some(guard) });
        }
        if wanted.contains(&trunk) {
            free.insert(trunk, FreePage { unused, guard: None });
        }
        trunk = next;
    }
    Ok(free)
}
