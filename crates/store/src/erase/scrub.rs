//! Removes an address from unused parts of the database file, and truncates SQLite's write-ahead log.

use postroad_boxed_futures::boxed_futures;

use super::spellings::spellings;
use crate::{Engine, Result, Store};

#[boxed_futures]
impl Store {
    /// Overwrites an address in parts of SQLite's file that no row uses. Returns the number of pages with rows that
    /// still contain it, for example because another message's subject mentions it. Does nothing on PostgreSQL.
    pub async fn scrub(&self, address: &str) -> Result<u64> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.scrub(spellings(address)).await,
            Engine::Postgres(_) => Ok(0),
        }
    }

    /// Whether erased data is overwritten in the files of the database. PostgreSQL keeps the data there until other
    /// rows reuse the space, or until `VACUUM FULL`.
    pub fn overwrites_erased(&self) -> bool {
        self.is_sqlite()
    }

    /// Copies SQLite's write-ahead log into the database file and truncates the log, because it contains old pages.
    /// Fails if other connections use the log all the time. Does nothing on PostgreSQL.
    pub async fn truncate_log(&self) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.truncate_log().await,
            Engine::Postgres(_) => Ok(()),
        }
    }
}
