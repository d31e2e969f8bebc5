//! Whether the store takes writes, and how far the queue is behind.

use postroad_model::Timestamp;

use crate::verbs::queue_list;
use crate::{Result, Store};

impl Store {
    /// When the longest overdue message was due. On PostgreSQL only of those that no node has claimed: nodes know theirs.
    pub async fn oldest_due(&self) -> Result<Option<Timestamp>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(queue_list::oldest_due(sql, now))).await
    }
}
