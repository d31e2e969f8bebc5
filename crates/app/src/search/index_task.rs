//! Task that adds messages to the search index, one block at a time, servers in turn. If the store is unavailable
//! nothing is lost: searches scan messages outside the index, and the next round adds them.

use std::collections::HashMap;
use std::time::Duration;

use postroad_model::ServerId;
use postroad_store::{IndexProgress, StoreError};

use crate::App;

/// Pause between two rounds.
const PAUSE: Duration = Duration::from_secs(10);
/// Messages of a block. Every search scans up to this many messages, and those of the last seconds, without an index;
/// small servers need no index.
const BLOCK_MESSAGES: usize = 4_096;

/// Running task.
#[derive(Debug)]
pub struct IndexTask {
    task: tokio::task::JoinHandle<()>,
}

impl IndexTask {
    pub fn start(app: App) -> Self {
        let task = tokio::spawn(async move {
            // Newest message of each server when it had too few for a block.
            let mut seen: HashMap<ServerId, i64> = HashMap::new();
            loop {
                if let Err(error) = app.index_messages(&mut seen).await {
                    tracing::warn!(%error, "indexing messages for search failed; retrying in 10 s");
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { task }
    }

    pub fn stop(self) {
        self.task.abort();
    }
}

impl App {
    /// Adds all full blocks. Each server gets one block a turn.
    async fn index_messages(&self, seen: &mut HashMap<ServerId, i64>) -> Result<(), StoreError> {
        let store = &self.inner.store;
        loop {
            let mut has_more = false;
            for (server_id, newest) in store.list_newest_messages().await? {
                if seen.get(&server_id) == Some(&newest) {
                    continue;
                }
                match store.index_next_block(server_id, BLOCK_MESSAGES).await? {
                    IndexProgress::Added => has_more = true,
                    // The newest messages wait for the next round: messages with lower ids may still be committing.
                    IndexProgress::Nothing => drop(seen.insert(server_id, newest)),
                }
            }
            if !has_more {
                break;
            }
        }
        while store.check_next_block().await? {}
        Ok(())
    }
}
