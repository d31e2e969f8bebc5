//! Health: whether the store takes writes.

use postroad_model::Timestamp;

use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Engine, Result, Store};

impl Store {
    /// Writes one row and waits until it is on stable storage, and makes a file where large bodies are files: fails where
    /// accepting a message would fail.
    pub async fn check_write(&self) -> Result<()> {
        if let Engine::Sqlite { engine, .. } = &*self.engine {
            engine.check_disk()?;
            engine.check_bodies().await?;
        }
        let now = self.clock.now();
        self.write(move |sql| Box::pin(note_write_check(sql, now))).await
    }
}

/// Proof that the store takes writes.
pub(crate) async fn note_write_check(sql: &Sql<'_>, now: Timestamp) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO settings (key, value) VALUES ('last_write_check', $1)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        &[now.to_rfc3339().into()],
    )
    .await?;
    Ok(())
}
