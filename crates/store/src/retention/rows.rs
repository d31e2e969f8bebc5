//! Removes expired rows of one table and server, a few at a time, so that sending does not wait.

use super::old_rows::{OldRows, RemovalBound};
use super::removal::{ROWS_PER_STEP_MAX, Removal, RemovalStage};
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

impl Store {
    /// Removes some rows of the first server that has any; servers before `first_index` have none left. Reads first,
    /// because usually there is nothing to remove, and SQLite has only one writer.
    pub(super) async fn remove_rows_of(
        &self,
        removal: &mut Removal,
        first_index: usize,
        before_id: i64,
    ) -> Result<u64> {
        let which = removal.which;
        for (server_index, bound) in removal.bounds.iter().enumerate().skip(first_index) {
            let bound = RemovalBound { before_id: bound.before_id.min(before_id), ..*bound };
            if self.read(move |sql| Box::pin(has_rows(sql, which, bound))).await? {
                let rows = self
                    .write(move |sql| Box::pin(remove_rows(sql, which, bound, ROWS_PER_STEP_MAX)))
                    .await?;
                removal.stage = RemovalStage::Rows { server_index, before_id };
                return Ok(rows);
            }
        }
        removal.stage = RemovalStage::End;
        Ok(0)
    }
}

/// SQL for removing old rows of a table. `$1` is the server, `$2` the first id that stays, `$3` the maximum number of
/// rows.
struct RowRemoval {
    exists_text: &'static str,
    delete_text: &'static str,
}

macro_rules! by_key {
    ($table:literal, $key:literal, $columns:literal) => {
        RowRemoval {
            exists_text: concat!(
                "SELECT server_id FROM ",
                $table,
                " WHERE server_id = $1 AND ",
                $key,
                " < $2 LIMIT 1"
            ),
            delete_text: concat!(
                "DELETE FROM ",
                $table,
                " WHERE server_id = $1 AND (",
                $columns,
                ") IN (SELECT ",
                $columns,
                " FROM ",
                $table,
                " WHERE server_id = $1 AND ",
                $key,
                " < $2 LIMIT $3)"
            ),
        }
    };
}

/// SQL for removing events by the ids of their messages: only counted events that no webhook waits for.
macro_rules! events_of_messages {
    ($is_counted:literal) => {
        RowRemoval {
            exists_text: concat!("SELECT e.server_id ", events_of_messages!(@from $is_counted), " LIMIT 1"),
            delete_text: concat!(
                "DELETE FROM events WHERE server_id = $1 AND id IN (SELECT e.id ",
                events_of_messages!(@from $is_counted),
                " LIMIT $3)"
            ),
        }
    };
    (@from $is_counted:literal) => {
        concat!(
            "FROM events e JOIN counter_marks c ON c.server_id = e.server_id
             WHERE e.server_id = $1 AND e.message_id > 0 AND e.message_id < $2 AND ",
            $is_counted,
            " AND NOT EXISTS (SELECT 1 FROM webhooks w
                  JOIN webhook_queue q ON q.server_id = w.server_id AND q.webhook_id = w.id
                  WHERE w.server_id = $1 AND w.enabled = 1 AND q.event_id = e.id)"
        )
    };
}

fn removal_of(which: OldRows, is_sqlite: bool) -> RowRemoval {
    match which {
        // PostgreSQL only. On SQLite bodies have no server id and some are files (`bodies.rs`).
        OldRows::Bodies => by_key!("bodies", "send_id", "send_id, piece"),
        OldRows::Transcripts => by_key!("delivery_transcripts", "message_id", "message_id, delivery_id"),
        OldRows::Deliveries => by_key!("deliveries", "message_id", "message_id, id"),
        OldRows::Events => by_key!("events", "id", "id"),
        OldRows::EventsOfMessages if is_sqlite => events_of_messages!("e.id <= c.event_id"),
        OldRows::EventsOfMessages => events_of_messages!("(e.xact, e.id) <= (c.xact, c.event_id)"),
        OldRows::Messages => by_key!("messages", "id", "id"),
        OldRows::Sends => by_key!("sends", "id", "id"),
        OldRows::WebhookAttempts => by_key!("webhook_attempts", "id", "id"),
    }
}

pub(crate) async fn has_rows(sql: &Sql<'_>, which: OldRows, bound: RemovalBound) -> Result<bool, StoreError> {
    let text = removal_of(which, sql.is_sqlite()).exists_text;
    Ok(sql.query_opt(text, &[bound.server_id.0.into(), bound.before_id.into()]).await?.is_some())
}

pub(crate) async fn remove_rows(
    sql: &Sql<'_>,
    which: OldRows,
    bound: RemovalBound,
    limit: usize,
) -> Result<u64, StoreError> {
    let text = removal_of(which, sql.is_sqlite()).delete_text;
    sql.execute(text, &[bound.server_id.0.into(), bound.before_id.into(), (limit as i64).into()]).await
}
