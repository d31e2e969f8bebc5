//! Lists the servers with waiting messages, for the operator.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, ServerId, Timestamp};

use crate::error::StoreError;
use crate::sql::Row;
use crate::{Result, Store};

/// A server's waiting messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backlog {
    pub server_id: ServerId,
    pub server_name: String,
    pub account_id: AccountId,
    pub account_name: String,
    /// At most [`Backlog::COUNTED_MAX`].
    pub waiting: u64,
    /// Earliest due time of the counted messages.
    pub first_due_at: Option<Timestamp>,
}

impl Backlog {
    /// Maximum number of messages of a server that are counted, so that a long queue costs little.
    pub const COUNTED_MAX: u64 = 1_000;
}

#[boxed_futures]
impl Store {
    /// Servers with the most waiting messages first; of servers with equally many, the one with the earliest due
    /// message.
    pub async fn list_backlogs(&self, limit: usize) -> Result<Vec<Backlog>> {
        let text = "WITH counted AS (
                        SELECT s.id, s.name, s.account_id,
                               (SELECT count(*) FROM (SELECT 1 FROM queue q WHERE q.server_id = s.id LIMIT $1) AS entries) AS waiting,
                               (SELECT min(due_at) FROM (SELECT due_at FROM queue q WHERE q.server_id = s.id
                                                         ORDER BY message_id LIMIT $1) AS oldest) AS first_due_at
                        FROM servers s WHERE EXISTS (SELECT 1 FROM queue q WHERE q.server_id = s.id))
                    SELECT c.id, c.name, a.id, a.name, c.waiting, c.first_due_at
                    FROM counted c JOIN accounts a ON a.id = c.account_id
                    ORDER BY c.waiting DESC, c.first_due_at, c.id LIMIT $2";
        let params = vec![(Backlog::COUNTED_MAX as i64).into(), (limit as i64).into()];
        self.fetch_all(text, params, read).await
    }
}

fn read(row: &Row) -> Result<Backlog, StoreError> {
    Ok(Backlog {
        server_id: ServerId(row.int(0)?),
        server_name: row.text(1)?,
        account_id: AccountId(row.int(2)?),
        account_name: row.text(3)?,
        waiting: row.int(4)? as u64,
        first_due_at: row.time_opt(5)?,
    })
}
