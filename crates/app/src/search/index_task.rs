//! Task that adds messages to the search index, one block at a time, servers in turn, and merges older blocks. If the
//! store is unavailable nothing is lost: searches scan messages outside the index, and a later round adds them.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use postroad_model::ServerId;
use postroad_store::{BLOCKS_PER_MERGE, IndexProgress, StoreError};

use crate::App;

/// Pause between two rounds.
const PAUSE_BETWEEN_ROUNDS: Duration = Duration::from_secs(10);
/// Messages of a block. A server with fewer messages has no index. Searches also scan the messages outside the index,
/// usually fewer than one block.
const BLOCK_MESSAGES: usize = 4_096;

/// Handle of the running task.
#[derive(Debug)]
pub struct IndexTask {
    task: tokio::task::JoinHandle<()>,
}

/// State of the task between its rounds.
#[derive(Debug, Default)]
struct IndexState {
    /// Id of each server's newest message at the last look that found no full block to add.
    newest_seen: HashMap<ServerId, i64>,
    /// Servers that may have blocks to merge.
    to_merge: BTreeSet<ServerId>,
}

impl IndexTask {
    pub fn start(app: App) -> Self {
        let task = tokio::spawn(async move {
            let mut state = IndexState::default();
            let mut has_listed_merges = false;
            loop {
                let round = async {
                    if !has_listed_merges {
                        state.to_merge.extend(app.inner.store.list_servers_with_checked_blocks().await?);
                        has_listed_merges = true;
                    }
                    app.index_messages(&mut state).await
                };
                match round.await {
                    // There is more to merge: begin the next round at once. Each round adds new messages before it
                    // merges.
                    Ok(()) if !state.to_merge.is_empty() => continue,
                    Ok(()) => {}
                    Err(error) => {
                        tracing::warn!(%error, "indexing messages for search failed; retrying in 10 s");
                    }
                }
                tokio::time::sleep(PAUSE_BETWEEN_ROUNDS).await;
            }
        });
        Self { task }
    }

    pub fn stop(self) {
        self.task.abort();
    }
}

impl App {
    /// Adds all full blocks, then merges some old ones. Each pass over the servers adds at most one block of each.
    async fn index_messages(&self, state: &mut IndexState) -> Result<(), StoreError> {
        let store = &self.inner.store;
        loop {
            let mut has_more = false;
            for (server_id, newest) in store.list_newest_messages().await? {
                if state.newest_seen.get(&server_id) == Some(&newest) {
                    continue;
                }
                match store.index_next_block(server_id, BLOCK_MESSAGES).await? {
                    IndexProgress::Added => has_more = true,
                    // No full block. Messages of the last seconds do not count: lower ids may still be committing. The
                    // server is tried again when it has a newer message.
                    IndexProgress::Nothing => drop(state.newest_seen.insert(server_id, newest)),
                }
            }
            if !has_more {
                break;
            }
        }
        while let Some(server_id) = store.check_next_block().await? {
            state.to_merge.insert(server_id);
        }
        for server_id in state.to_merge.clone() {
            if store.merge_next_blocks(server_id, BLOCKS_PER_MERGE).await? == IndexProgress::Nothing {
                state.to_merge.remove(&server_id);
            }
        }
        while store.remove_merged_parts().await? {}
        Ok(())
    }
}
