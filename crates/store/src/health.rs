//! Health check: whether the store accepts writes.

use postroad_boxed_futures::boxed_futures;

use crate::{Engine, Result, Store};

#[boxed_futures]
impl Store {
    /// Writes one row and waits until it is on stable storage. On SQLite also creates a file, because large bodies are
    /// stored in files. Fails in most cases in which accepting a message would fail.
    pub async fn check_write(&self) -> Result<()> {
        if let Engine::Sqlite { engine, .. } = &*self.engine {
            engine.check_disk()?;
            engine.check_bodies().await?;
        }
        let now = self.clock.now();
        self.execute(
            "INSERT INTO settings (key, value) VALUES ('last_write_check', $1)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            vec![now.to_rfc3339().into()],
        )
        .await?;
        Ok(())
    }
}
