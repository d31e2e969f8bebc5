//! `finish` on PostgreSQL: two round trips, whatever the number of outcomes. The first locks the entries and reads the
//! state of their messages; the second writes everything and commits.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use deadpool_postgres::ClientWrapper;
use futures_util::future::join;
use postroad_model::{DeliveryId, EventId, IdGenerator, Status, Timestamp};
use tokio_postgres::types::ToSql;

use super::claims::Key;
use super::delivery_rows::DeliveryRows;
use super::event_rows::EventRows;
use super::generic_plans::BEGIN_WITH_GENERIC_PLANS;
use super::partitions::IDS_PER_WEEK;
use super::pipeline::Pipeline;
use super::queue::key_columns;
use super::suppression_rows::SuppressionRows;
use super::table::table;
use super::{BatchKind, Node, lease, pipeline};
use crate::error::StoreError;
use crate::events::event::EventRow;
use crate::outcomes::Outcome;
use crate::outcomes::deliveries::DeliveryRow;
use crate::outcomes::outcome::AttemptMatch;
use crate::outcomes::source_tally::SourceTally;
use crate::sql::storable;

/// Locks rows one by one in the order of their keys, to avoid deadlocks. `begin.rs` explains `coalesce`. Only weekly
/// partitions from the oldest to the newest message of the batch are read; a send is created with its messages, so it
/// is in their week or an adjacent one.
const LOCK: &str =
    "SELECT row.server_id, row.message_id, locked.status, locked.last_seq, locked.test, locked.due_at
    FROM unnest($3::bigint[], $4::bigint[]) AS row (server_id, message_id)
    CROSS JOIN LATERAL (
        SELECT m.status, m.last_seq, q.due_at,
            coalesce((SELECT s.test FROM sends s WHERE s.server_id = m.server_id AND s.id = m.send_id
                AND s.id >= $7 AND s.id <= $8), 0) AS test
        FROM queue q CROSS JOIN messages m
        WHERE q.server_id = row.server_id AND q.message_id = row.message_id
          AND m.server_id = row.server_id AND m.id = row.message_id AND m.id >= $5 AND m.id <= $6
          AND coalesce(q.claimed_node, -1) = $1 AND q.claimed_epoch + 0 = $2
        LIMIT 1 FOR UPDATE OF q, m) AS locked";

table! { Statuses<'a> of StatusRow, "UPDATE messages SET status = row.status, last_seq = row.last_seq,
        last_delivery_at = row.at, hold_expiry = row.hold_expiry
    FROM {arrays} AS row ({columns})
    WHERE messages.server_id = row.server_id AND messages.id = row.id AND messages.id = ANY ($2::bigint[])",
    server_id: i64, id: i64, status: Cow<'a, str>, last_seq: i64, at: i64, hold_expiry: Option<i64>,
}

table! { Transcripts<'a> of TranscriptRow, "INSERT INTO delivery_transcripts ({columns}) SELECT * FROM {arrays}",
    server_id: i64, message_id: i64, delivery_id: i64, transcript: Cow<'a, str>,
}

table! { Removals of RemovalRow, "DELETE FROM queue WHERE ctid = ANY (ARRAY(
        SELECT place FROM {arrays} AS row ({columns})
        CROSS JOIN LATERAL (SELECT q.ctid AS place FROM queue q
            WHERE q.server_id = row.server_id AND q.message_id = row.message_id LIMIT 1) AS found))",
    server_id: i64, message_id: i64,
}

// Requeues messages. Also releases entries to which the outcome no longer applies, without other changes.
table! { Requeues of RequeueRow, "UPDATE queue SET begun_at = NULL, due_at = coalesce(row.due_at, queue.due_at),
        attempts = attempts + row.attempt,
        source_id = CASE WHEN row.due_at IS NULL THEN queue.source_id ELSE row.source_id END,
        claimed_node = CASE WHEN row.keep THEN claimed_node END,
        claimed_epoch = CASE WHEN row.keep THEN claimed_epoch END
    FROM {arrays} AS row ({columns})
    WHERE queue.server_id = row.server_id AND queue.message_id = row.message_id
      AND queue.message_id = ANY ($2::bigint[])",
    server_id: i64, message_id: i64, due_at: Option<i64>, attempt: i64, keep: bool, source_id: Option<i64>,
}

table! { SourceDays<'a> of SourceDayRow, "INSERT INTO source_days AS known ({columns})
    SELECT * FROM {arrays} AS row ({columns}) ORDER BY source_id, provider COLLATE \"C\", day
    ON CONFLICT (source_id, provider, day) DO UPDATE
        SET sent = known.sent + excluded.sent, bounced = known.bounced + excluded.bounced",
    source_id: i64, provider: Cow<'a, str>, day: i64, sent: i64, bounced: i64,
}

#[derive(Default)]
struct Changes<'a> {
    statuses: Statuses<'a>,
    deliveries: DeliveryRows<'a>,
    events: EventRows<'a>,
    transcripts: Transcripts<'a>,
    removals: Removals,
    requeues: Requeues,
    suppressions: SuppressionRows<'a>,
    source_days: SourceDays<'a>,
}

/// State of a locked message.
struct MessageState {
    status: Status,
    last_seq: i64,
    test: i64,
    due_at: Timestamp,
}

/// Result of storing one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettleResult {
    /// The outcome is recorded, either now or by an earlier commit whose confirmation was lost.
    Recorded,
    /// The outcome was not recorded, and this node has no claim on the message any more.
    NotRecorded,
    /// Nothing was written: this node has claimed the message for another attempt.
    OtherAttempt,
}

/// Records outcomes. When it returns `Ok`, the transaction is committed.
pub(super) async fn finish(
    client: &ClientWrapper,
    node: &Node,
    outcomes: &[Arc<Outcome>],
) -> Result<Vec<SettleResult>, StoreError> {
    let mut states = lock(client, node, outcomes).await?;
    let (mut changes, mut counts) = (Changes::default(), SourceTally::default());
    let mut settled = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        // The state is removed, so that a second outcome for the same claim finds none.
        let Some(state) = states.remove(&outcome.key()) else {
            settled.push(SettleResult::NotRecorded);
            continue;
        };
        let can_change = state.status.can_become(outcome.delivery.status);
        settled.push(match outcome.match_attempt(state.due_at) {
            AttemptMatch::Same if can_change => {
                changes.settle(outcome, &state, &node.ids);
                counts.add(outcome);
                SettleResult::Recorded
            }
            AttemptMatch::Same => {
                changes.release(outcome);
                SettleResult::NotRecorded
            }
            AttemptMatch::Recorded => SettleResult::Recorded,
            AttemptMatch::Other => SettleResult::OtherAttempt,
        });
    }
    for ((source_id, provider, day), (sent, bounced)) in counts.iter() {
        changes.source_days.push(SourceDayRow {
            source_id: source_id.0,
            provider: provider.to_string().into(),
            day: *day,
            sent: *sent,
            bounced: *bounced,
        });
    }
    write(client, node, &changes).await?;
    Ok(settled)
}

async fn lock(
    client: &ClientWrapper,
    node: &Node,
    outcomes: &[Arc<Outcome>],
) -> Result<HashMap<Key, MessageState>, StoreError> {
    let mut keys: Vec<Key> = outcomes.iter().map(|outcome| outcome.key()).collect();
    keys.sort_unstable();
    keys.dedup();
    let (servers, messages) = key_columns(&keys);
    let oldest = messages.iter().copied().min().unwrap_or_default();
    let newest = messages.iter().copied().max().unwrap_or_default();
    let (oldest_send, newest_send) = (oldest - IDS_PER_WEEK, newest + IDS_PER_WEEK);
    let number = i64::from(node.number);
    let statement = client.prepare_cached(LOCK).await?;
    let params: [&(dyn ToSql + Sync); 8] =
        [&number, &node.epoch, &servers, &messages, &oldest, &newest, &oldest_send, &newest_send];
    let (begun, rows) =
        join(client.batch_execute(BEGIN_WITH_GENERIC_PLANS), client.query(&statement, &params)).await;
    begun?;
    rows?
        .iter()
        .map(|row| {
            let key = (postroad_model::ServerId(row.get(0)), postroad_model::MessageId(row.get(1)));
            let status: &str = row.get(2);
            let status = Status::parse(status).ok_or_else(|| {
                StoreError::Internal(format!("a message has the unknown status {status:?}"))
            })?;
            Ok((
                key,
                MessageState {
                    status,
                    last_seq: row.get(3),
                    test: row.get(4),
                    due_at: Timestamp::from_micros(row.get(5)),
                },
            ))
        })
        .collect()
}

impl<'a> Changes<'a> {
    fn settle(&mut self, outcome: &'a Outcome, state: &MessageState, ids: &IdGenerator) {
        let (server_id, message_id) = (outcome.server_id.0, outcome.message_id.0);
        let (new, seq, delivery_id) = (&outcome.delivery, state.last_seq + 1, DeliveryId(ids.next()));
        let hold_expiry = outcome.hold_expiry.filter(|_| new.status == Status::Held);
        self.statuses.push(StatusRow {
            server_id,
            id: message_id,
            status: new.status.as_str().into(),
            last_seq: seq,
            at: new.at.as_micros(),
            hold_expiry: hold_expiry.map(Timestamp::as_micros),
        });
        self.deliveries.push(DeliveryRow::of(outcome.server_id, outcome.message_id, delivery_id, new));
        self.events.push(EventRow {
            server_id: outcome.server_id,
            message_id: outcome.message_id,
            id: EventId(ids.next()),
            seq,
            kind: outcome.event.kind,
            at: new.at,
            test: state.test != 0,
            data: outcome.event.data.as_str().into(),
        });
        if let Some(transcript) = &outcome.transcript {
            let (delivery_id, transcript) = (delivery_id.0, storable(transcript));
            self.transcripts.push(TranscriptRow { server_id, message_id, delivery_id, transcript });
        }
        if let Some(suppression) = &outcome.suppress {
            self.suppressions.push(outcome.server_id, suppression, new.at.max(ids.now()));
        }
        if new.status.is_queued() {
            let due_at = Some(outcome.due_at().as_micros());
            self.requeue(outcome, due_at, i64::from(outcome.counts_as_attempt), outcome.keep_claim);
        } else {
            self.removals.push(RemovalRow { server_id, message_id });
        }
    }

    fn release(&mut self, outcome: &Outcome) {
        self.requeue(outcome, None, 0, false);
    }

    fn requeue(&mut self, outcome: &Outcome, due_at: Option<i64>, attempt: i64, keep: bool) {
        self.requeues.push(RequeueRow {
            server_id: outcome.server_id.0,
            message_id: outcome.message_id.0,
            due_at,
            attempt,
            keep,
            source_id: outcome.retry_source_id.map(|id| id.0),
        });
    }
}

async fn write(client: &ClientWrapper, node: &Node, changes: &Changes<'_>) -> Result<(), StoreError> {
    let with_custom_plans = [changes.statuses.statement(), changes.requeues.statement()];
    let [events, outbox] = changes.events.statements();
    let tables = [
        changes.deliveries.statement(),
        events,
        outbox,
        changes.transcripts.statement(),
        changes.removals.statement(),
    ];
    let (number, kind, last_id) = (i64::from(node.number), BatchKind::Finish as i64, node.ids.last());
    let shared = [
        changes.suppressions.statement(),
        changes.source_days.statement(),
        Some((lease::STORE_LAST_ID, vec![&number, &kind, &node.epoch, &last_id])),
    ];
    let pipeline = Pipeline {
        begin: None,
        with_custom_plans: with_custom_plans.into_iter().flatten().collect(),
        together: tables.into_iter().flatten().collect(),
        in_order: shared.into_iter().flatten().collect(),
    };
    pipeline::commit(client, pipeline).await
}
