//! Records outcomes of messages that this node claimed, and of waiting messages that any node may have claimed.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{IdGenerator, ServerId};

use super::outcome::{AttemptMatch, Outcome};
use crate::error::StoreError;
use crate::queue::waiting::{EntryChange, change_status, find, lock_and_check_sending, remove_entry};
use crate::sql::Sql;
use crate::{Engine, Result, SqlOperationWithIds, Store};

#[boxed_futures]
impl Store {
    /// Settles claimed messages, all in one transaction. Returns `false` for each message to which its outcome no
    /// longer applies: then nothing is recorded, and this node has no claim on the message, or a claim for another
    /// attempt.
    pub async fn finish(&self, outcomes: Vec<impl Into<Arc<Outcome>>>) -> Result<Vec<bool>> {
        let outcomes: Vec<Arc<Outcome>> = outcomes.into_iter().map(Into::into).collect();
        let servers: Vec<ServerId> = outcomes.iter().map(|outcome| outcome.server_id).collect();
        let suppressing = outcomes.iter().filter(|outcome| outcome.suppress.is_some());
        let suppressing: Vec<ServerId> = suppressing.map(|outcome| outcome.server_id).collect();
        let settled = match &*self.engine {
            Engine::Sqlite { engine, ids } => engine.finish(outcomes, Arc::clone(ids)).await?,
            Engine::Postgres(engine) => engine.finish(&outcomes).await?,
        };
        self.last_suppressed.note(suppressing, self.clock.now());
        self.notifier.notify(servers);
        Ok(settled)
    }

    /// Records the final outcome of a queued message, even one that another node has claimed. `false` if the message is
    /// being sent, waits for another attempt, or is no longer queued.
    pub async fn finish_waiting(&self, outcome: Arc<Outcome>) -> Result<bool> {
        let key = outcome.key();
        let (server_id, _) = key;
        let operation: SqlOperationWithIds<(bool, EntryChange)> =
            Box::new(move |sql, ids| Box::pin(async move { finish_waiting(sql, &ids, &outcome).await }));
        let (is_settled, _) = match &*self.engine {
            Engine::Sqlite { engine, ids } => {
                let result_if_being_sent = false;
                engine.change_waiting(key, Arc::clone(ids), result_if_being_sent, operation).await?
            }
            Engine::Postgres(engine) => engine.change_waiting(key, operation).await?,
        };
        if is_settled {
            self.notifier.notify([server_id]);
        }
        Ok(is_settled)
    }
}

/// Records the final outcome of a message that is not being sent, whoever has claimed it.
pub(crate) async fn finish_waiting(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    outcome: &Outcome,
) -> Result<(bool, EntryChange), StoreError> {
    let key = outcome.key();
    if lock_and_check_sending(sql, key).await? {
        return Ok((false, EntryChange::Unchanged));
    }
    let text = "SELECT due_at FROM queue WHERE server_id = $1 AND message_id = $2";
    let (server_id, message_id) = key;
    let entry = sql.query_opt(text, &[server_id.0.into(), message_id.0.into()]).await?;
    let due_at = entry.map(|row| row.time(0)).transpose()?;
    let is_same_attempt = due_at.is_some_and(|due_at| outcome.match_attempt(due_at) == AttemptMatch::Same);
    let Some(state) = find(sql, key).await?.filter(|_| is_same_attempt) else {
        return Ok((false, EntryChange::Unchanged));
    };
    let hold_expiry = None;
    if !change_status(sql, ids, key, &state, &outcome.delivery, &outcome.event, hold_expiry).await? {
        return Ok((false, EntryChange::Unchanged));
    }
    remove_entry(sql, key).await?;
    Ok((true, EntryChange::Gone))
}
