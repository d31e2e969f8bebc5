//! Replay: puts past events into a webhook's outbox again.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::idgen::first_id_at;
use postroad_model::{EventId, EventKind, ServerId, Timestamp, WebhookId};

use super::endpoints;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{ChangeDescription, Result, Store};

/// The id of an event is created at most this long after the event.
const ID_DELAY_MAX: Duration = Duration::from_hours(1);
/// Maximum number of events that one call examines.
const EVENTS_PER_CALL_MAX: i64 = 500;

/// Events to post to a webhook again.
#[derive(Debug, Clone, Copy)]
pub enum Replay {
    Event(EventId),
    /// Events in this time range (`to` excluded), with ids above `after`.
    Between {
        from: Timestamp,
        to: Timestamp,
        after: EventId,
    },
}

/// Progress of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayProgress {
    pub events: u64,
    /// The last event examined, if there may be more in the range.
    pub continue_after: Option<EventId>,
}

#[boxed_futures]
impl Store {
    /// Puts events into a webhook's outbox again. `NotFound` if there is no such webhook or event.
    pub async fn replay_webhook(
        &self,
        server_id: ServerId,
        id: WebhookId,
        replay: Replay,
    ) -> Result<ReplayProgress> {
        let now = self.clock.now();
        let replayed = self
            .write_described(move |sql| {
                Box::pin(async move {
                    let replayed = replay_events(sql, server_id, id, replay, now).await?;
                    Ok((replayed, (replayed.events > 0).then(|| description(replay))))
                })
            })
            .await?;
        self.notifier.notify([server_id]);
        Ok(replayed)
    }
}

/// Description of a replay for the audit log.
fn description(replay: Replay) -> ChangeDescription {
    ChangeDescription::from_iter(match replay {
        Replay::Event(id) => vec![("replayed_event".to_owned(), id.0.into())],
        Replay::Between { from, to, .. } => vec![
            ("replayed_from".to_owned(), from.to_rfc3339().into()),
            ("replayed_to".to_owned(), to.to_rfc3339().into()),
        ],
    })
}

/// Puts events into the outbox again; events that already wait become due now. Events that the webhook does not
/// subscribe to are left out.
pub(crate) async fn replay_events(
    sql: &Sql<'_>,
    server_id: ServerId,
    webhook_id: WebhookId,
    replay: Replay,
    now: Timestamp,
) -> Result<ReplayProgress, StoreError> {
    let webhook = endpoints::find(sql, server_id, webhook_id).await?.ok_or(StoreError::NotFound)?;
    let (rows, continue_after) = match replay {
        Replay::Event(id) => {
            let text = "SELECT id, kind FROM events WHERE server_id = $1 AND id = $2";
            let rows = sql.query(text, &[server_id.0.into(), id.0.into()]).await?;
            if rows.is_empty() {
                return Err(StoreError::NotFound);
            }
            (rows, None)
        }
        Replay::Between { from, to, after } => {
            // Ids are created soon after their event.
            let first = first_id_at(from).max(after.0 + 1);
            let end = first_id_at(to.plus(ID_DELAY_MAX));
            let rows = sql
                .query(
                    "SELECT id, kind FROM events WHERE server_id = $1 AND id >= $2 AND id < $3 AND at >= $4 AND at < $5
                     ORDER BY id LIMIT $6",
                    &[
                        server_id.0.into(),
                        first.into(),
                        end.into(),
                        from.into(),
                        to.into(),
                        EVENTS_PER_CALL_MAX.into(),
                    ],
                )
                .await?;
            let is_full = rows.len() as i64 == EVENTS_PER_CALL_MAX;
            let last = rows.last().filter(|_| is_full).map(|row| row.int(0).map(EventId)).transpose()?;
            (rows, last)
        }
    };
    let mut events = 0;
    for row in &rows {
        if !webhook.events.contains(row.parsed(1, EventKind::parse)?) {
            continue;
        }
        events += 1;
        // An event that is being posted right now is posted again, because the caller may have missed that post.
        let text = if sql.is_sqlite() {
            "INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts) VALUES ($1, $2, $3, $4, 0)
             ON CONFLICT (server_id, webhook_id, event_id) DO UPDATE SET due_at = excluded.due_at"
        } else {
            "INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts) VALUES ($1, $2, $3, $4, 0)
             ON CONFLICT (server_id, webhook_id, event_id)
             DO UPDATE SET due_at = excluded.due_at, claimed_until = NULL"
        };
        sql.execute(text, &[server_id.0.into(), webhook_id.0.into(), row.int(0)?.into(), now.into()]).await?;
    }
    Ok(ReplayProgress { events, continue_after })
}
