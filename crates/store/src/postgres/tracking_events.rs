//! Records opens, clicks and unsubscriptions on PostgreSQL in two round trips, whatever the number of events. The first
//! round trip locks the messages and reads their state; the second writes everything and commits.

use std::collections::HashMap;

use deadpool_postgres::ClientWrapper;
use futures_util::future::join;
use postroad_model::{DomainName, EventId, IdGenerator, MessageId, ServerId, Status, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::claims::Key;
use super::event_rows::EventRows;
use super::pipeline::Pipeline;
use super::queue::key_columns;
use super::suppression_rows::SuppressionRows;
use super::table::table;
use super::{BatchKind, Engine, Node, lease, pipeline, with_timeout};
use crate::erase::message::erased_address;
use crate::error::StoreError;
use crate::events::NewEvent;
use crate::events::event::EventRow;
use crate::tracking::{MessageState, NewTrackingEvent, sort, suppression};

/// Locks messages in the order of their keys, as `finish` does.
const LOCK: &str = concat!(
    "SELECT m.server_id, m.id, m.last_seq, m.marks, m.status, m.last_delivery_at, s.test
    FROM unnest($1::bigint[], $2::bigint[]) AS row (server_id, id)
    JOIN messages m ON m.server_id = row.server_id AND m.id = row.id
    JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
    WHERE s.direction = 'outgoing' AND m.rcpt_to <> '",
    erased_address!(),
    "' ORDER BY m.server_id, m.id FOR UPDATE OF m"
);

table! { MarkedMessages of MarkRow, "UPDATE messages SET last_seq = row.last_seq, marks = row.marks
    FROM {arrays} AS row ({columns})
    WHERE messages.server_id = row.server_id AND messages.id = row.id",
    server_id: i64, id: i64, last_seq: i64, marks: i64,
}

#[derive(Default)]
struct Changes<'a> {
    marks: MarkedMessages,
    events: EventRows<'a>,
}

impl Engine {
    /// Records all events or none. Fenced by the lease.
    pub(crate) async fn record_tracking_events(
        &self,
        mut tracked: Vec<NewTrackingEvent>,
        simulator_domain: &DomainName,
    ) -> Result<(), StoreError> {
        if tracked.is_empty() {
            return Ok(());
        }
        sort(&mut tracked);
        let node = self.database.node()?;
        // Event ids are new, so their weekly partition may be missing.
        let next_id = node.ids.next();
        self.database.partitions.ensure(&self.database.pool, next_id, next_id).await?;
        let connection = self.database.connection().await?;
        let recorded =
            with_timeout(Box::pin(record(connection.client(), &node, &tracked, simulator_domain))).await;
        recorded?;
        connection.done();
        Ok(())
    }
}

/// Records the events. When it returns `Ok`, the transaction is committed.
async fn record(
    client: &ClientWrapper,
    node: &Node,
    tracked: &[NewTrackingEvent],
    simulator_domain: &DomainName,
) -> Result<(), StoreError> {
    let mut states = lock(client, tracked).await?;
    let mut changes = Changes::default();
    let mut suppressed = Vec::new();
    for message_events in tracked.chunk_by(|one, next| key(one) == key(next)) {
        let mut state = states.remove(&key(&message_events[0]));
        if let Some(state) = &mut state {
            changes.add_message(message_events, state, &node.ids);
        }
        let new = |tracked_event| {
            suppression(tracked_event, state.as_ref(), simulator_domain).map(|new| (tracked_event, new))
        };
        suppressed.extend(message_events.iter().filter_map(new));
    }
    let mut suppressions = SuppressionRows::default();
    for (tracked_event, new) in &suppressed {
        suppressions.push(tracked_event.server_id, new, tracked_event.at.max(node.ids.now()));
    }
    let (number, kind, last_id) = (i64::from(node.number), BatchKind::Finish as i64, node.ids.last());
    let tables = changes.events.statements();
    let shared =
        [suppressions.statement(), Some((lease::STORE_LAST_ID, vec![&number, &kind, &node.epoch, &last_id]))];
    let pipeline = Pipeline {
        begin: None,
        with_custom_plans: changes.marks.statement().into_iter().collect(),
        together: tables.into_iter().flatten().collect(),
        in_order: shared.into_iter().flatten().collect(),
    };
    pipeline::commit(client, pipeline).await
}

fn key(tracked_event: &NewTrackingEvent) -> Key {
    (tracked_event.server_id, tracked_event.message_id)
}

async fn lock(
    client: &ClientWrapper,
    tracked: &[NewTrackingEvent],
) -> Result<HashMap<Key, MessageState>, StoreError> {
    let mut keys: Vec<Key> = tracked.iter().map(key).collect();
    // The keys are sorted, so equal ones are neighbours.
    keys.dedup();
    let (servers, messages) = key_columns(&keys);
    let statement = client.prepare_cached(LOCK).await?;
    let params: [&(dyn ToSql + Sync); 2] = [&servers, &messages];
    let (begun, rows) = join(client.batch_execute("BEGIN"), client.query(&statement, &params)).await;
    begun?;
    rows?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<(Key, MessageState), StoreError> {
    let status: &str = row.get(4);
    let status = Status::parse(status)
        .ok_or_else(|| StoreError::Internal(format!("a message has the unknown status {status:?}")))?;
    let state = MessageState {
        last_seq: row.get(2),
        marks: row.get(3),
        status,
        last_delivery_at: row.get::<_, Option<i64>>(5).map(Timestamp::from_micros),
        test: row.get::<_, i64>(6) != 0,
    };
    Ok(((ServerId(row.get(0)), MessageId(row.get(1))), state))
}

impl Changes<'_> {
    /// Adds all tracking events of one message.
    fn add_message(&mut self, tracked: &[NewTrackingEvent], state: &mut MessageState, ids: &IdGenerator) {
        let seq_before = state.last_seq;
        for tracked_event in tracked {
            if let Some(NewEvent { kind, data }) = state.apply(tracked_event) {
                self.events.push(EventRow {
                    server_id: tracked_event.server_id,
                    message_id: tracked_event.message_id,
                    id: EventId(ids.next()),
                    seq: state.last_seq,
                    kind,
                    at: tracked_event.at,
                    test: state.test,
                    data: data.into(),
                });
            }
        }
        if let Some(tracked_event) = tracked.first().filter(|_| state.last_seq > seq_before) {
            self.marks.push(MarkRow {
                server_id: tracked_event.server_id.0,
                id: tracked_event.message_id.0,
                last_seq: state.last_seq,
                marks: state.marks,
            });
        }
    }
}
