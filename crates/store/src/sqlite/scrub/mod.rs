//! Overwrites texts in those parts of the database file that no row uses. SQLite leaves the bytes of changed and
//! removed rows in gaps of their pages and in free pages until the space is reused.
//!
//! The file is read, and its unused parts are found, while the service runs. The writer only checks that those pages
//! are unchanged and overwrites the parts, a few pages in one group.

mod file;
mod free_pages;
mod log;
mod overflow;
mod overwrite;
mod page;
mod plan;

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use self::file::Needles;
use self::overwrite::{Overwrite, Plan, hash_of};
use self::plan::make_plan;
use super::{Engine, connection};
use crate::SqlOperation;
use crate::error::StoreError;
use crate::sql::Sql;

/// Pages that one operation of the writer overwrites.
const PAGES_PER_GROUP_MAX: usize = 16;
/// Maximum number of times the file is read. Pages change in between, so the file is read again until nothing is left
/// to overwrite.
const ROUNDS_MAX: usize = 8;

impl Engine {
    /// Overwrites `texts` in unused parts of the file. The texts are in lower case, and match in any letter case.
    /// Returns the number of pages with a row that still contains one of the texts.
    pub(crate) async fn scrub(&self, texts: Vec<String>) -> Result<u64, StoreError> {
        let path = self.path.clone();
        // Otherwise, pages that are only in the write-ahead log would be missed.
        blocking(move || log::write_back(&connection::open_reader_of_pages(&path)?)).await?;
        for _ in 0..ROUNDS_MAX {
            let (path, texts) = (self.path.clone(), texts.clone());
            let plan = blocking(move || plan_overwrites(&path, &texts)).await?;
            if plan.overwrites.is_empty() && plan.unclear == 0 {
                return Ok(plan.pages_in_use);
            }
            let mut rest = plan.overwrites.into_iter();
            loop {
                let chunk: Vec<Overwrite> = rest.by_ref().take(PAGES_PER_GROUP_MAX).collect();
                if chunk.is_empty() {
                    break;
                }
                self.overwrite(chunk).await?;
            }
        }
        Err(StoreError::Unavailable("the pages of the database change faster than they are read".into()))
    }

    async fn overwrite(&self, chunk: Vec<Overwrite>) -> Result<(), StoreError> {
        let operation: SqlOperation<_> =
            Box::new(move |sql| Box::pin(async move { overwrite_unchanged(sql, &chunk) }));
        self.write(operation).await
    }

    /// Truncates the log. Fails if readers keep it in use all the time.
    pub(crate) async fn truncate_log(&self) -> Result<(), StoreError> {
        let path = self.path.clone();
        blocking(move || log::truncate(&mut connection::open_writer(&path)?)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Unavailable(
            "the task that reads the database file ended early: the service is stopping, or it panicked"
                .into(),
        )),
    }
}

/// Reads the file and finds the parts to overwrite.
fn plan_overwrites(path: &Path, texts: &[String]) -> Result<Plan, StoreError> {
    let connection = connection::open_reader_of_pages(path)?;
    let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let needles = Needles::new(texts);
    let found = file::find_pages(path, page_bytes as usize, &needles)
        .map_err(|error| StoreError::Unavailable(format!("reading the database file: {error}")))?;
    make_plan(&connection, &found, &needles)
}

/// Overwrites the parts, inside the writer's transaction. Pages that changed since they were read are left for the next
/// round.
fn overwrite_unchanged(sql: &Sql<'_>, overwrites: &[Overwrite]) -> Result<(), StoreError> {
    let Sql::Sqlite(connection) = sql else { return Ok(()) };
    let connection = connection.lock();
    let mut last_guard = None;
    for overwrite in overwrites {
        if let Some(guard) = overwrite.guard
            && last_guard != Some(guard)
        {
            let is_same =
                read_page(&connection, guard.page)?.is_some_and(|data| hash_of(&data) == guard.hash);
            if !is_same {
                continue;
            }
            last_guard = Some(guard);
        }
        let Some(mut data) = read_page(&connection, overwrite.page)? else { continue };
        if hash_of(&data) != overwrite.hash {
            continue;
        }
        for range in &overwrite.unused {
            data[range.clone()].fill(0);
        }
        let text = "UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1";
        connection.prepare_cached(text)?.execute((overwrite.page, data))?;
    }
    Ok(())
}

fn read_page(connection: &Connection, number: u32) -> Result<Option<Vec<u8>>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
    Ok(statement.query_row([number], |row| row.get(0)).optional()?)
}

#[cfg(test)]
mod tests;
