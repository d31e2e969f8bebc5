//! Ended servers: deleted servers that can no longer be restored. Their mail is cancelled and removed.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{MessageId, ServerId};

use crate::{CancelResult, Result, Store};

#[boxed_futures]
impl Store {
    /// Lets the retention task remove all mail of deleted servers, and of servers of deleted accounts, that can no
    /// longer be restored. Returns how many servers were found.
    pub async fn end_deleted_servers(&self, limit: usize) -> Result<u64> {
        let params = vec![self.clock.now().into(), (limit as i64).into()];
        // An ended server has a `delete_at` and both retentions 0. Retentions of 0 alone prove nothing: a customer may
        // have set them.
        let ended = self
            .execute(
                "UPDATE servers SET delete_at = coalesce(delete_at, $1), retention_bodies = 0, retention_messages = 0,
                     version = version + 1, updated_at = $1
                 WHERE id IN (SELECT id FROM servers
                              WHERE delete_at <= $1 AND coalesce(retention_bodies, 1) + coalesce(retention_messages, 1) > 0
                              UNION
                              SELECT s.id FROM accounts a JOIN servers s ON s.account_id = a.id
                              WHERE a.delete_at <= $1 AND (s.delete_at IS NULL
                                    OR coalesce(s.retention_bodies, 1) + coalesce(s.retention_messages, 1) > 0)
                              LIMIT $2)",
                params,
            )
            .await?;
        Ok(ended)
    }

    /// Cancels some queued messages of servers that can no longer be restored; returns how many. Skips messages that
    /// are being sent; a later call cancels them if they are queued again.
    pub async fn cancel_mail_of_ended_servers(&self, limit: usize) -> Result<usize> {
        let text = "SELECT q.server_id, q.message_id FROM servers s JOIN queue q ON q.server_id = s.id
                    WHERE s.delete_at <= $1 LIMIT $2";
        let params = vec![self.clock.now().into(), (limit as i64).into()];
        let waiting =
            self.fetch_all(text, params, |row| Ok((ServerId(row.int(0)?), MessageId(row.int(1)?)))).await?;
        let mut cancelled = 0;
        for (server_id, id) in waiting {
            if matches!(self.cancel(server_id, id).await?, CancelResult::Done(_)) {
                cancelled += 1;
            }
        }
        Ok(cancelled)
    }
}
