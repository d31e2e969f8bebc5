//! Stores a returned message, and applies its effect to the message it is about.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DeliveryId, EventId, IdGenerator, MessageId, ServerId, Status};

use super::record::{NewReturn, ReturnEffect, ReturnResult};
use super::stored_mail::{insert, should_store};
use crate::analytics::recipient_providers;
use crate::erase::message::erased_address;
use crate::events::append;
use crate::events::event::EventRow;
use crate::outcomes::append::append_delivery;
use crate::outcomes::deliveries::DeliveryRow;
use crate::pools::source_days::day_of;
use crate::sql::Sql;
use crate::suppressions::add;
use crate::{Engine, Result, SqlOperation, SqlOperationWithIds, Store, StoreError};

#[boxed_futures]
impl Store {
    /// Stores the mail and applies its effect. When this returns `Ok`, both are on stable storage; on failure neither
    /// is, unless only the commit's answer was lost. `NotFound` if the message does not exist, or was erased.
    pub async fn take_return(&self, new: NewReturn) -> Result<ReturnResult> {
        let server_id = new.info.server_id;
        // In its own task, so that a caller that disconnects between writing a large body and its row leaves no
        // orphaned file.
        let engine = self.engine.clone();
        let task = tokio::spawn(async move {
            let (send_id, id, about, body) = (new.info.id, new.id, new.about, new.body.clone());
            let operation: SqlOperationWithIds<ReturnResult> =
                Box::new(move |sql, ids| Box::pin(async move { take(sql, &ids, new).await }));
            match &*engine {
                Engine::Sqlite { engine, ids } => {
                    let ids = Arc::clone(ids);
                    let operation: SqlOperation<ReturnResult> = Box::new(move |sql| operation(sql, ids));
                    engine
                        .write_with_body(send_id, &body, operation, |result: &ReturnResult| result.is_stored)
                        .await
                }
                Engine::Postgres(engine) => {
                    let bytes = body.compressed().len();
                    engine.write_with_body(about, &[send_id.0, id.0], bytes, operation).await
                }
            }
        });
        let result =
            task.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the store is closed".into())))?;
        self.last_suppressed.note([server_id], self.clock.now());
        self.notifier.notify([server_id]);
        Ok(result)
    }
}

/// State of the message that the returned mail is about.
struct MessageState {
    status: Status,
    last_seq: i64,
    test: bool,
}

/// `NotFound` if the message does not exist, or was erased.
pub(crate) async fn take(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    new: NewReturn,
) -> Result<ReturnResult, StoreError> {
    let server_id = new.info.server_id;
    let state = lock_message(sql, server_id, new.about).await?.ok_or(StoreError::NotFound)?;
    let effect = new.effect.as_ref();
    let has_effect = match effect {
        Some(effect) => is_new_effect(sql, &new, effect, &state).await?,
        None => false,
    };
    // Mail with an effect is always stored: the event names it.
    let is_stored = has_effect || should_store(sql, &new).await?;
    // The body comes first: writing it may take long, and other transactions wait for the counter rows that
    // `apply_effect` locks.
    if is_stored {
        insert(sql, &new, state.test).await?;
    }
    if let Some(effect) = effect.filter(|_| has_effect) {
        apply_effect(sql, ids, &new, effect, &state).await?;
    }
    Ok(ReturnResult { is_stored, has_effect })
}

/// Reads the message, and locks it against other returned mail about it.
async fn lock_message(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: MessageId,
) -> Result<Option<MessageState>, StoreError> {
    macro_rules! text {
        ($lock:literal) => {
            concat!(
                "SELECT m.status, m.last_seq, s.test FROM messages m
                 JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
                 WHERE m.server_id = $1 AND m.id = $2 AND s.direction = 'outgoing' AND m.rcpt_to <> '",
                erased_address!(),
                "'",
                $lock
            )
        };
    }
    let text = if sql.is_sqlite() { text!("") } else { text!(" FOR UPDATE OF m") };
    let row = sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await?;
    row.map(|row| {
        Ok(MessageState { status: row.parsed(0, Status::parse)?, last_seq: row.int(1)?, test: row.flag(2)? })
    })
    .transpose()
}

/// Whether the effect is new: a message bounces only from some statuses, and is complained about once.
async fn is_new_effect(
    sql: &Sql<'_>,
    new: &NewReturn,
    effect: &ReturnEffect,
    state: &MessageState,
) -> Result<bool, StoreError> {
    if let Some(delivery) = &effect.delivery {
        return Ok(state.status.can_become(delivery.status));
    }
    let earlier = sql
        .query_opt(
            // Ordered by `seq`; otherwise SQLite would scan all events of the server.
            "SELECT seq FROM events WHERE server_id = $1 AND message_id = $2 AND kind = $3 ORDER BY seq LIMIT 1",
            &[new.info.server_id.0.into(), new.about.0.into(), effect.event.kind.as_str().into()],
        )
        .await?;
    Ok(earlier.is_none())
}

async fn apply_effect(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    new: &NewReturn,
    effect: &ReturnEffect,
    state: &MessageState,
) -> Result<(), StoreError> {
    let (server_id, about, seq) = (new.info.server_id, new.about, state.last_seq + 1);
    let Some(delivery) = &effect.delivery else {
        let text = "UPDATE messages SET last_seq = $3 WHERE server_id = $1 AND id = $2";
        sql.execute_one(text, &[server_id.0.into(), about.0.into(), seq.into()]).await?;
        append_event_and_suppress(sql, ids, new, effect, state).await?;
        return count_for_source(sql, new, effect, (0, 1)).await;
    };
    sql.execute_one(
        "UPDATE messages SET last_seq = $3, status = $4, last_delivery_at = $5 WHERE server_id = $1 AND id = $2",
        &[
            server_id.0.into(),
            about.0.into(),
            seq.into(),
            delivery.status.as_str().into(),
            delivery.at.into(),
        ],
    )
    .await?;
    append_delivery(sql, DeliveryRow::of(server_id, about, DeliveryId(ids.next()), delivery)).await?;
    append_event_and_suppress(sql, ids, new, effect, state).await?;
    count_for_source(sql, new, effect, (1, 0)).await
}

/// Appends the event, and suppresses the address.
async fn append_event_and_suppress(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    new: &NewReturn,
    effect: &ReturnEffect,
    state: &MessageState,
) -> Result<(), StoreError> {
    let (server_id, at) = (new.info.server_id, new.info.created_at);
    let event = EventRow {
        server_id,
        message_id: new.about,
        id: EventId(ids.next()),
        seq: state.last_seq + 1,
        kind: effect.event.kind,
        at,
        test: state.test,
        data: effect.event.data.as_str().into(),
    };
    append::append(sql, event).await?;
    if let Some(suppression) = &effect.suppress {
        add::add(sql, server_id, vec![suppression.clone()], at).await?;
    }
    Ok(())
}

/// Counts the bounce or complaint for the message's source address, if the source still exists: too many bounces or
/// complaints pause its warm-up.
async fn count_for_source(
    sql: &Sql<'_>,
    new: &NewReturn,
    effect: &ReturnEffect,
    (bounced, complained): (i64, i64),
) -> Result<(), StoreError> {
    if !effect.counts_for_source {
        return Ok(());
    }
    let source = sql
        .query_opt(
            "SELECT s.id, m.rcpt_to FROM deliveries d JOIN sources s ON s.address = d.source_ip
             JOIN messages m ON m.server_id = d.server_id AND m.id = d.message_id
             WHERE d.server_id = $1 AND d.message_id = $2 AND d.status = $3 ORDER BY d.id DESC LIMIT 1",
            &[new.info.server_id.0.into(), new.about.0.into(), Status::Sent.as_str().into()],
        )
        .await?;
    let Some(source) = source else { return Ok(()) };
    let provider = recipient_providers::provider_of(sql, &source.text(1)?).await?;
    sql.execute(
        "INSERT INTO source_days (source_id, provider, day, sent, bounced, complained) VALUES ($1, $5, $2, 0, $3, $4)
         ON CONFLICT (source_id, provider, day) DO UPDATE SET bounced = source_days.bounced + excluded.bounced,
             complained = source_days.complained + excluded.complained",
        &[
            source.int(0)?.into(),
            day_of(new.info.created_at).into(),
            bounced.into(),
            complained.into(),
            provider.into(),
        ],
    )
    .await?;
    Ok(())
}
