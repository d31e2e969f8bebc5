//! Overwrites a text in parts of the file that no row uses. SQLite leaves the bytes of changed and removed rows in gaps of
//! their pages and in free pages until something else needs the room.
//!
//! The file is read beside the running service, a part at a time; only pages that contain the text are written, a few in
//! one short transaction.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Duration;

use memchr::memmem;
use rusqlite::{Connection, OptionalExtension};

use super::{Engine, connection, page};
use crate::error::StoreError;

const READ_BYTES: usize = 4 << 20;
/// Pause after each part: others use the disk too.
const READ_PAUSE: Duration = Duration::from_millis(2);
/// Pages that one transaction looks at.
const PAGES_AT_ONCE: usize = 32;
/// Beyond this number of pages, the first byte of an overflow page can look like a b-tree page's.
const PAGES_MAX: u32 = 1 << 24;
const CHECKPOINT_TRIES: usize = 20;
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(250);

impl Engine {
    /// `texts` are in lower case; they are found in any case. Returns how many pages still have one in a row.
    pub(crate) async fn scrub(&self, texts: Vec<String>) -> Result<u64, StoreError> {
        let path = self.path.clone();
        blocking(move || scrub(&path, &texts)).await
    }

    pub(crate) async fn truncate_log(&self) -> Result<(), StoreError> {
        let path = self.path.clone();
        blocking(move || truncate_log(&connection::open_writer(&path)?)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Unavailable("the service is stopping".into())),
    }
}

fn scrub(path: &Path, texts: &[String]) -> Result<u64, StoreError> {
    let connection = connection::open_writer(path)?;
    // Pages in the log only would be missed.
    truncate_log(&connection)?;
    let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let finders: Vec<_> = texts.iter().map(|text| memmem::Finder::new(text.as_bytes())).collect();
    let found = find_pages(path, page_bytes as usize, &finders)
        .map_err(|error| StoreError::Unavailable(format!("reading the database file: {error}")))?;
    let mut left = 0;
    for numbers in found.chunks(PAGES_AT_ONCE) {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let overwritten = overwrite_unused(&connection, numbers, &finders);
        connection.execute_batch(if overwritten.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        left += overwritten?;
    }
    Ok(left)
}

/// Numbers of the pages that contain one of the texts, or the beginning of one.
fn find_pages(path: &Path, page_bytes: usize, finders: &[memmem::Finder<'_>]) -> std::io::Result<Vec<u32>> {
    let mut file = File::open(path)?;
    let longest = finders.iter().map(|finder| finder.needle().len()).max().unwrap_or(0);
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
        for finder in finders {
            let pages = finder.find_iter(&part).map(|at| ((part_at + at) / page_bytes + 1) as u32);
            found.extend(pages);
        }
        let kept = part.len().min(longest.saturating_sub(1));
        part_at += part.len() - kept;
        part.drain(..part.len() - kept);
        thread::sleep(READ_PAUSE);
    }
}

/// Inside a transaction. Returns how many of the pages still have one of the texts in a row.
fn overwrite_unused(
    connection: &Connection,
    numbers: &[u32],
    finders: &[memmem::Finder<'_>],
) -> Result<u64, StoreError> {
    let pages: u32 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    if pages > PAGES_MAX {
        let advice = "the database file is too large to be searched for erased addresses; run VACUUM instead";
        return Err(StoreError::Internal(advice.to_owned()));
    }
    let free = list_free_pages(connection)?;
    let mut left = 0;
    for number in numbers {
        let Some(mut data) = read_page(connection, *number)? else { continue };
        let unused = match free.get(number) {
            Some(range) => vec![range.clone()],
            None => match page::unused_ranges(&data, *number) {
                Some(ranges) => ranges,
                None => unused_of_overflow_page(connection, *number, data.len())?,
            },
        };
        let before = data.clone();
        for range in unused {
            data[range].fill(0);
        }
        if contains(&data, finders) {
            left += 1;
        }
        if data != before {
            let text = "UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1";
            connection.prepare_cached(text)?.execute((number, data))?;
        }
    }
    Ok(left)
}

fn contains(data: &[u8], finders: &[memmem::Finder<'_>]) -> bool {
    let lower = data.to_ascii_lowercase();
    finders.iter().any(|finder| finder.find(&lower).is_some())
}

/// Free pages, each with its unused bytes: all of it, or what follows the list in it.
fn list_free_pages(connection: &Connection) -> Result<HashMap<u32, Range<usize>>, StoreError> {
    let mut free = HashMap::new();
    let first = read_page(connection, 1)?.and_then(|page| page::first_trunk(&page));
    let mut trunk = first.unwrap_or(0);
    while trunk != 0 && !free.contains_key(&trunk) {
        let Some(page) = read_page(connection, trunk)? else { break };
        let Some((next, leaves, unused)) = page::read_trunk(&page) else { break };
        free.insert(trunk, unused);
        free.extend(leaves.into_iter().map(|leaf| (leaf, 0..page.len())));
        trunk = next;
    }
    Ok(free)
}

/// The end of the last page of a long value. Only SQLite's own statistics tell where it begins; they read all pages, which
/// is why this is asked last.
fn unused_of_overflow_page(
    connection: &Connection,
    number: u32,
    page_bytes: usize,
) -> Result<Vec<Range<usize>>, StoreError> {
    let unused: Option<u32> = connection
        .prepare_cached("SELECT unused FROM dbstat WHERE pageno = ?1 AND pagetype = 'overflow'")?
        .query_row([number], |row| row.get(0))
        .optional()?;
    Ok(unused.map(|bytes| page_bytes.saturating_sub(bytes as usize)..page_bytes).into_iter().collect())
}

fn read_page(connection: &Connection, number: u32) -> Result<Option<Vec<u8>>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
    Ok(statement.query_row([number], |row| row.get(0)).optional()?)
}

/// Fails if readers keep the log in use all the time.
fn truncate_log(connection: &Connection) -> Result<(), StoreError> {
    for _ in 0..CHECKPOINT_TRIES {
        let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy == 0 {
            return Ok(());
        }
        thread::sleep(CHECKPOINT_PAUSE);
    }
    Err(StoreError::Unavailable("the log of the database is in use all the time".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "jane.doe@customer.example";

    fn holds_address(path: &Path) -> bool {
        memmem::find(&std::fs::read(path).unwrap(), ADDRESS.as_bytes()).is_some()
    }

    /// Rows that were removed, changed and moved between pages, short and long.
    #[test]
    fn nothing_is_left_of_removed_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let connection = connection::open_writer(&path).unwrap();
        connection.execute_batch("CREATE TABLE t (id TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID").unwrap();
        for number in 0..3_000 {
            let id = format!("{}-{number}", number * 7_919 % 3_001);
            let text = if number % 10 == 0 { ADDRESS.repeat(1_000) } else { ADDRESS.to_owned() };
            connection.execute("INSERT INTO t VALUES (?1, ?2)", (id, text)).unwrap();
        }
        connection.execute("DELETE FROM t WHERE id LIKE '%5'", []).unwrap();
        connection.execute("UPDATE t SET text = 'gone' WHERE id LIKE '%3'", []).unwrap();
        connection.execute("UPDATE t SET text = replace(text, 'jane.doe', 'erased')", []).unwrap();
        // Long values that end inside of a page which was full of addresses.
        connection.execute("UPDATE t SET text = hex(zeroblob(6000)) WHERE id LIKE '%7'", []).unwrap();
        truncate_log(&connection).unwrap();
        assert!(holds_address(&path), "SQLite left some, or this test shows nothing");
        let texts = [ADDRESS.to_owned()];
        assert_eq!(scrub(&path, &texts).unwrap(), 0);
        truncate_log(&connection).unwrap();
        assert!(!holds_address(&path));
        let checked: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(checked, "ok");
        let rows: i64 = connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 2_700);
    }

    #[test]
    fn rows_that_mention_it_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let connection = connection::open_writer(&path).unwrap();
        connection.execute_batch("CREATE TABLE t (text TEXT)").unwrap();
        connection
            .execute("INSERT INTO t VALUES (?1)", [format!("About {}", ADDRESS.to_uppercase())])
            .unwrap();
        assert_eq!(scrub(&path, &[ADDRESS.to_owned()]).unwrap(), 1);
        let kept: String = connection.query_row("SELECT text FROM t", [], |row| row.get(0)).unwrap();
        assert!(kept.starts_with("About JANE"));
    }
}
