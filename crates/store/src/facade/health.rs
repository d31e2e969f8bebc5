//! Whether the store takes writes, and how far the queue is behind.

use postroad_model::Timestamp;

use crate::verbs::{queue_list, settings};
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
        self.write(move |sql| Box::pin(settings::note_write_check(sql, now))).await
    }

    /// When the longest overdue message was due. On PostgreSQL only of those that no node has claimed: nodes know theirs.
    pub async fn oldest_due(&self) -> Result<Option<Timestamp>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(queue_list::oldest_due(sql, now))).await
    }
}
