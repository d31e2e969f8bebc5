//! Remove an address from unused parts of the database file.

use postroad_boxed_futures::boxed_futures;

use crate::suppressions::record::address_key;
use crate::{Engine, Result, Store};

#[boxed_futures]
impl Store {
    /// Overwrites an address in parts of SQLite's file that no row uses. Returns on how many pages rows still contain it, as
    /// when another message's subject mentions it. Does nothing on PostgreSQL.
    pub async fn scrub(&self, address: &str) -> Result<u64> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => {
                let mut texts = vec![address_key(address), address.to_ascii_lowercase()];
                texts.dedup();
                engine.scrub(texts).await
            }
            Engine::Postgres(_) => Ok(0),
        }
    }

    /// Whether erased data is overwritten in the files. PostgreSQL keeps it there until `VACUUM FULL`.
    pub fn overwrites_erased(&self) -> bool {
        self.is_sqlite()
    }

    /// Empties SQLite's log into the database file: the log holds pages as they were before. Fails if it is in use
    /// all the time. Does nothing on PostgreSQL.
    pub async fn truncate_log(&self) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.truncate_log().await,
            Engine::Postgres(_) => Ok(()),
        }
    }
}
