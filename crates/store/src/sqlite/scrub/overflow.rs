//! Finds the unused end of the last overflow page of a long value. An overflow page does not show where the value ends:
//! only the row of the value does. So the statistics of `dbstat` are read, table by table: they list each row's
//! overflow pages with their unused bytes.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::file::Needles;
use super::overwrite::{Guard, Plan, hash_of};
use super::{page, read_page};
use crate::error::StoreError;

/// `dbstat` path and number of a page between the root and the current page.
type Ancestor = (String, u32);

/// Adds the wanted pages, b-tree pages and overflow pages, to the plan; pages that belong to no table or index stay in
/// `wanted`. Reads all tables and indexes, each in its own transaction, concurrently with writers.
pub(super) fn add_to_plan(
    connection: &Connection,
    wanted: &mut BTreeSet<u32>,
    plan: &mut Plan,
    needles: &Needles<'_>,
) -> Result<(), StoreError> {
    let mut names: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE rootpage > 0")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    names.push("sqlite_schema".to_owned());
    for name in names {
        if wanted.is_empty() {
            break;
        }
        connection.execute_batch("BEGIN")?;
        let walked = walk(connection, &name, wanted, plan, needles);
        connection.execute_batch("ROLLBACK")?;
        walked?;
    }
    Ok(())
}

/// Walks through one table or index, inside a transaction, so that the pages match the statistics.
fn walk(
    connection: &Connection,
    name: &str,
    wanted: &mut BTreeSet<u32>,
    plan: &mut Plan,
    needles: &Needles<'_>,
) -> Result<(), StoreError> {
    let text = "SELECT pageno, pagetype = 'overflow', unused, path FROM dbstat WHERE name = ?1";
    let mut statement = connection.prepare_cached(text)?;
    let mut rows = statement.query([name])?;
    // From the root to the current page: the walk is depth-first.
    let mut ancestors: Vec<Ancestor> = Vec::new();
    while let Some(row) = rows.next()? {
        let (number, is_overflow): (u32, bool) = (row.get(0)?, row.get(1)?);
        let path: String = row.get(3)?;
        if !is_overflow {
            ancestors.retain(|(ancestor, _)| path.starts_with(ancestor.as_str()));
            ancestors.push((path, number));
            if wanted.remove(&number)
                && let Some(data) = read_page(connection, number)?
            {
                let unused = page::unused_ranges(&data, number).unwrap_or_default();
                plan.add(number, &data, unused, None, needles);
            }
            continue;
        }
        if !wanted.remove(&number) {
            continue;
        }
        // The path of an overflow page has three parts: the path of the row's page, the position of the row in that
        // page, and the position of the overflow page in the value.
        let owner = path.rfind('/').map_or("", |end| &path[..=end]);
        let owner = ancestors.iter().rev().find(|(ancestor, _)| ancestor == owner).map(|(_, number)| *number);
        let (Some(data), Some(owner)) = (read_page(connection, number)?, owner) else { continue };
        let Some(owner_data) = read_page(connection, owner)? else { continue };
        let unused: u32 = row.get(2)?;
        let unused = data.len().saturating_sub(unused as usize)..data.len();
        let guard = Guard { page: owner, hash: hash_of(&owner_data) };
        plan.add(number, &data, vec![unused], Some(guard), needles);
    }
    Ok(())
}
