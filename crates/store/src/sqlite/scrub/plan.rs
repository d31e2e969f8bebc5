//! Finds the unused parts of pages that contain one of the searched texts.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::file::Needles;
use super::overwrite::Plan;
use super::{free_pages, overflow, page, read_page};
use crate::error::StoreError;

/// In a database with more pages than this, an overflow page can begin with the same byte as a b-tree page, because it
/// begins with the number of the next page.
const UNAMBIGUOUS_PAGES_MAX: u32 = 1 << 24;

/// Examines the pages in which a text was found.
pub(super) fn make_plan(
    connection: &Connection,
    numbers: &[u32],
    needles: &Needles<'_>,
) -> Result<Plan, StoreError> {
    let pages: u32 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let is_small = pages <= UNAMBIGUOUS_PAGES_MAX;
    let mut free = free_pages::find(connection, numbers)?;
    let (mut plan, mut unclear) = (Plan::default(), BTreeSet::new());
    for number in numbers {
        let Some(data) = read_page(connection, *number)? else { continue };
        if !needles.is_any_in(&data) {
            continue;
        }
        if let Some(free) = free.remove(number) {
            plan.add(*number, &data, vec![free.unused], free.guard, needles);
            continue;
        }
        match page::unused_ranges(&data, *number) {
            Some(unused) if is_small => plan.add(*number, &data, unused, None, needles),
            // Only the last overflow page of a value has an unused end.
            None if is_small && !page::is_last_overflow(&data) => plan.pages_in_use += 1,
            // The last overflow page of a value, or any page of a large database.
            _ => {
                unclear.insert(*number);
            }
        }
    }
    if !unclear.is_empty() {
        overflow::add_to_plan(connection, &mut unclear, &mut plan, needles)?;
        plan.unclear = unclear.len();
    }
    Ok(plan)
}
