//! Attempts to post events to webhooks: the log, and their effects on outbox and endpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::try_join_all;
use postroad_boxed_futures::boxed_futures;
use postroad_model::idgen::first_id_at;
use postroad_model::{
    EventId, EventKind, IdGenerator, MessageId, ServerId, Timestamp, WebhookAttemptId, WebhookId,
};

use super::health::update_health;
use crate::error::StoreError;
use crate::sql::{Row, Sql, to_json};
use crate::{Result, Store};

/// How far the time in an id may differ from the attempt's time: ids may run ahead of the clock, or be created some
/// time after the attempt began.
const ID_SLACK: Duration = Duration::from_hours(1);

/// Outcome of posting an event to a webhook.
#[derive(Debug, Clone)]
pub struct WebhookOutcome {
    pub server_id: ServerId,
    pub webhook_id: WebhookId,
    pub attempt: NewWebhookAttempt,
    pub next: WebhookNext,
}

/// Next step for the event after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookNext {
    /// The endpoint accepted the event.
    Done,
    RetryAt(Timestamp),
    /// The event is not posted again.
    GiveUp,
    /// The webhook's format cannot express the event, which can happen after the format was changed. The event is not
    /// posted, and this is not a failure of the endpoint.
    UnsupportedInFormat,
    /// The post was a test of an event that is not in the outbox.
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhookAttempt {
    pub event_id: EventId,
    /// 0 for an event of the server.
    pub message_id: MessageId,
    pub kind: EventKind,
    pub at: Timestamp,
    /// 1 for the first attempt for this event.
    pub number: u32,
    pub url: String,
    pub status: Option<u16>,
    /// The beginning of the answer.
    pub answer: String,
    pub error_class: Option<String>,
    pub error: Option<String>,
    pub connect_us: Option<i64>,
    pub duration_us: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookAttempt {
    pub id: WebhookAttemptId,
    pub webhook_id: WebhookId,
    pub attempt: NewWebhookAttempt,
    pub next_attempt_at: Option<Timestamp>,
}

/// Attempts to find; `None` in a field matches all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebhookAttemptFilter {
    /// Whether the endpoint accepted the event.
    pub succeeded: Option<bool>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// A page of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookAttemptPage {
    /// Newest first.
    pub attempts: Vec<WebhookAttempt>,
    /// The next page begins before this id; `None` at the end.
    pub before: Option<WebhookAttemptId>,
}

macro_rules! columns {
    () => {
        "id, webhook_id, event_id, message_id, kind, at, number, url, status, answer, error_class, error, connect_us,
         duration_us, next_attempt_at"
    };
}

#[boxed_futures]
impl Store {
    /// Records outcomes of webhook posts, all in one transaction.
    pub async fn settle_webhooks(&self, outcomes: Vec<WebhookOutcome>) -> Result<()> {
        self.write_with_ids(move |sql, ids| Box::pin(async move { settle(sql, &ids, &outcomes).await })).await
    }

    /// Like `settle_webhooks` for one outcome, but without recording the attempt. For an attempt that cannot be
    /// recorded: otherwise its event would be posted again and again.
    pub async fn settle_unrecorded_webhook(&self, outcome: WebhookOutcome) -> Result<()> {
        self.write(move |sql| {
            Box::pin(async move {
                change_outbox(sql, &outcome).await?;
                update_health_of_all(sql, &[outcome]).await
            })
        })
        .await
    }

    /// Attempts of a webhook with ids below `before`, newest first.
    pub async fn list_webhook_attempts(
        &self,
        server_id: ServerId,
        webhook_id: WebhookId,
        before: Option<WebhookAttemptId>,
        limit: usize,
    ) -> Result<Vec<WebhookAttempt>> {
        let limit = limit as i64;
        let text = concat!(
            "SELECT ",
            columns!(),
            " FROM webhook_attempts
         WHERE server_id = $1 AND webhook_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
        );
        let before = before.map_or(i64::MAX, |id| id.0);
        let params = [server_id.0.into(), webhook_id.0.into(), before.into(), limit.into()];
        self.fetch_all(text, params.into(), read).await
    }

    /// Attempts that a filter selects, with ids below `before`, newest first. Examines at most `scanned_max` attempts,
    /// so there may be more even if fewer than `limit` are found.
    pub async fn search_webhook_attempts(
        &self,
        (server_id, webhook_id): (ServerId, WebhookId),
        filter: WebhookAttemptFilter,
        before: Option<WebhookAttemptId>,
        limit: usize,
        scanned_max: usize,
    ) -> Result<WebhookAttemptPage> {
        let from_id = filter.since.map_or(0, |since| first_id_at(since.minus(ID_SLACK)));
        let before_id = filter.until.map_or(i64::MAX, |until| first_id_at(until.plus(ID_SLACK)));
        let before_id = before.map_or(before_id, |before| before.0.min(before_id));
        let newest_unscanned = self
            .fetch_opt(
                "SELECT id FROM webhook_attempts WHERE server_id = $1 AND webhook_id = $2 AND id >= $3 AND id < $4
                 ORDER BY id DESC LIMIT 1 OFFSET $5",
                vec![
                    server_id.0.into(),
                    webhook_id.0.into(),
                    from_id.into(),
                    before_id.into(),
                    (scanned_max as i64).into(),
                ],
                |row| row.int(0),
            )
            .await?;
        let text = concat!(
            "SELECT ",
            columns!(),
            " FROM webhook_attempts
             WHERE server_id = $1 AND webhook_id = $2 AND id >= $3 AND id < $4 AND at >= $5 AND at < $6
                 AND (CAST($7 AS BIGINT) IS NULL OR (error_class IS NULL) = (CAST($7 AS BIGINT) = 1))
             ORDER BY id DESC LIMIT $8"
        );
        let params = vec![
            server_id.0.into(),
            webhook_id.0.into(),
            newest_unscanned.map_or(from_id, |newest_unscanned| newest_unscanned + 1).into(),
            before_id.into(),
            filter.since.map_or(i64::MIN, Timestamp::as_micros).into(),
            filter.until.map_or(i64::MAX, Timestamp::as_micros).into(),
            filter.succeeded.map(i64::from).into(),
            (limit as i64).into(),
        ];
        let attempts = self.fetch_all(text, params, read).await?;
        let before = match attempts.last() {
            Some(last) if attempts.len() == limit => Some(last.id),
            _ => newest_unscanned.map(|newest_unscanned| WebhookAttemptId(newest_unscanned + 1)),
        };
        Ok(WebhookAttemptPage { attempts, before })
    }

    /// Attempts for an event, in time order.
    pub async fn list_event_attempts(
        &self,
        server_id: ServerId,
        event_id: EventId,
        limit: usize,
    ) -> Result<Vec<WebhookAttempt>> {
        let limit = limit as i64;
        let text = concat!(
            "SELECT ",
            columns!(),
            " FROM webhook_attempts WHERE server_id = $1 AND event_id = $2 ORDER BY id LIMIT $3"
        );
        let params = [server_id.0.into(), event_id.0.into(), limit.into()];
        self.fetch_all(text, params.into(), read).await
    }

    /// Attempts for these events, newest first.
    pub async fn list_attempts_of_events(
        &self,
        server_id: ServerId,
        events: Vec<EventId>,
        limit: usize,
    ) -> Result<Vec<WebhookAttempt>> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let text = if self.is_sqlite() {
            concat!(
                "SELECT ",
                columns!(),
                " FROM webhook_attempts INDEXED BY webhook_attempts_by_event
                 WHERE server_id = $1 AND event_id IN (SELECT value FROM json_each($2)) ORDER BY id DESC LIMIT $3"
            )
        } else {
            concat!(
                "SELECT ",
                columns!(),
                " FROM json_array_elements_text(CAST($2::text AS json)) AS wanted (event)
                 CROSS JOIN LATERAL (SELECT * FROM webhook_attempts a WHERE a.server_id = $1
                                     AND a.event_id = wanted.event::bigint OFFSET 0) attempts ORDER BY id DESC LIMIT $3"
            )
        };
        let events: Vec<i64> = events.into_iter().map(|event| event.0).collect();
        let params = vec![server_id.0.into(), to_json(&events).into(), (limit as i64).into()];
        self.fetch_all(text, params, read).await
    }

    pub async fn find_webhook_attempt(
        &self,
        server_id: ServerId,
        id: WebhookAttemptId,
    ) -> Result<Option<WebhookAttempt>> {
        let text = concat!("SELECT ", columns!(), " FROM webhook_attempts WHERE server_id = $1 AND id = $2");
        self.fetch_opt(text, vec![server_id.0.into(), id.0.into()], read).await
    }
}

pub(crate) async fn settle(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    outcomes: &[WebhookOutcome],
) -> Result<(), StoreError> {
    // Concurrently, so that on PostgreSQL the statements of one outcome do not wait for the answers to those of
    // another.
    try_join_all(outcomes.iter().map(|outcome| settle_one(sql, ids, outcome))).await?;
    update_health_of_all(sql, outcomes).await
}

async fn update_health_of_all(sql: &Sql<'_>, outcomes: &[WebhookOutcome]) -> Result<(), StoreError> {
    // In the order of their keys, to avoid deadlocks between nodes.
    let mut by_webhook: BTreeMap<(ServerId, WebhookId), Vec<&WebhookOutcome>> = BTreeMap::new();
    for outcome in outcomes {
        by_webhook.entry((outcome.server_id, outcome.webhook_id)).or_default().push(outcome);
    }
    for (key, outcomes) in by_webhook {
        let times_of = |is_wanted: fn(WebhookNext) -> bool| {
            let wanted = outcomes.iter().filter(|outcome| is_wanted(outcome.next));
            wanted.map(|outcome| outcome.attempt.at).collect::<Vec<_>>()
        };
        let successes = times_of(|next| next == WebhookNext::Done);
        let failures = times_of(|next| matches!(next, WebhookNext::RetryAt(_) | WebhookNext::GiveUp));
        update_health(sql, key, &successes, &failures).await?;
    }
    Ok(())
}

async fn settle_one(sql: &Sql<'_>, ids: &IdGenerator, outcome: &WebhookOutcome) -> Result<(), StoreError> {
    insert_attempt(sql, ids, outcome).await?;
    change_outbox(sql, outcome).await
}

async fn change_outbox(sql: &Sql<'_>, outcome: &WebhookOutcome) -> Result<(), StoreError> {
    let key = (outcome.server_id, outcome.webhook_id);
    let (event, at) = (outcome.attempt.event_id, outcome.attempt.at);
    match outcome.next {
        WebhookNext::Done | WebhookNext::GiveUp | WebhookNext::UnsupportedInFormat => {
            remove_from_outbox(sql, key, event, at).await
        }
        WebhookNext::RetryAt(due_at) => postpone(sql, key, event, at, due_at).await,
        WebhookNext::Nothing => Ok(()),
    }
}

/// Removes an event from the outbox. If the event was replayed during the attempt, it stays and is posted again.
async fn remove_from_outbox(
    sql: &Sql<'_>,
    key: (ServerId, WebhookId),
    event: EventId,
    begun_at: Timestamp,
) -> Result<(), StoreError> {
    let text = "DELETE FROM webhook_queue WHERE server_id = $1 AND webhook_id = $2 AND event_id = $3 AND due_at <= $4";
    sql.execute(text, &[key.0.0.into(), key.1.0.into(), event.0.into(), begun_at.into()]).await?;
    Ok(())
}

/// Lets an event wait for its next attempt. If the event was replayed during this attempt, it stays due.
async fn postpone(
    sql: &Sql<'_>,
    key: (ServerId, WebhookId),
    event: EventId,
    begun_at: Timestamp,
    due_at: Timestamp,
) -> Result<(), StoreError> {
    let text = if sql.is_sqlite() {
        "UPDATE webhook_queue SET due_at = $4, attempts = attempts + 1
         WHERE server_id = $1 AND webhook_id = $2 AND event_id = $3 AND due_at <= $5"
    } else {
        "UPDATE webhook_queue SET due_at = $4, attempts = attempts + 1, claimed_until = NULL
         WHERE server_id = $1 AND webhook_id = $2 AND event_id = $3 AND due_at <= $5"
    };
    let params = [key.0.0.into(), key.1.0.into(), event.0.into(), due_at.into(), begun_at.into()];
    sql.execute(text, &params).await?;
    Ok(())
}

async fn insert_attempt(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    outcome: &WebhookOutcome,
) -> Result<(), StoreError> {
    let attempt = &outcome.attempt;
    let next_attempt_at = match outcome.next {
        WebhookNext::RetryAt(at) => Some(at),
        WebhookNext::Done | WebhookNext::GiveUp | WebhookNext::UnsupportedInFormat | WebhookNext::Nothing => {
            None
        }
    };
    sql.execute(
        "INSERT INTO webhook_attempts (server_id, id, webhook_id, event_id, message_id, kind, at, number, url, status,
                                       answer, error_class, error, connect_us, duration_us, next_attempt_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
        &[
            outcome.server_id.0.into(),
            ids.next().into(),
            outcome.webhook_id.0.into(),
            attempt.event_id.0.into(),
            attempt.message_id.0.into(),
            attempt.kind.as_str().into(),
            attempt.at.into(),
            i64::from(attempt.number).into(),
            attempt.url.as_str().into(),
            attempt.status.map(i64::from).into(),
            attempt.answer.as_str().into(),
            attempt.error_class.as_deref().into(),
            attempt.error.as_deref().into(),
            attempt.connect_us.into(),
            attempt.duration_us.into(),
            next_attempt_at.into(),
        ],
    )
    .await?;
    Ok(())
}

fn read(row: &Row) -> Result<WebhookAttempt, StoreError> {
    Ok(WebhookAttempt {
        id: WebhookAttemptId(row.int(0)?),
        webhook_id: WebhookId(row.int(1)?),
        attempt: NewWebhookAttempt {
            event_id: EventId(row.int(2)?),
            message_id: MessageId(row.int(3)?),
            kind: row.parsed(4, EventKind::parse)?,
            at: row.time(5)?,
            number: row.int(6)? as u32,
            url: row.text(7)?,
            status: row.int_opt(8)?.map(|status| status as u16),
            answer: row.text(9)?,
            error_class: row.text_opt(10)?,
            error: row.text_opt(11)?,
            connect_us: row.int_opt(12)?,
            duration_us: row.int(13)?,
        },
        next_attempt_at: row.time_opt(14)?,
    })
}
