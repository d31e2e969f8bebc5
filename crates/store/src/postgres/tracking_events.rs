//! Opens, clicks and unsubscriptions on PostgreSQL: two flights, whatever their number. The first locks the messages and
//! reads where they stand, the second writes everything and commits.

use std::borrow::Cow;
use std::collections::HashMap;

use deadpool_postgres::ClientWrapper;
use futures_util::future::join;
use postroad_model::{DomainName, IdGenerator, MessageId, ServerId, Status, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::claims::Key;
use super::columns::{Events, table};
use super::flight::Flight;
use super::outbox::Outbox;
use super::queue::columns;
use super::suppressing::Suppressions;
use super::{Engine, Lane, Node, bounded, flight, lease};
use crate::error::StoreError;
use crate::events::NewEvent;
use crate::tracking::{NewTrackingEvent, Standing, sort, suppression};

/// Locked in the order of their keys, as `finish` does.
const LOCK: &str = "SELECT m.server_id, m.id, m.last_seq, m.marks, m.status, m.last_delivery_at, s.test
    FROM unnest($1::bigint[], $2::bigint[]) AS row (server_id, id)
    JOIN messages m ON m.server_id = row.server_id AND m.id = row.id
    JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
    WHERE s.direction = 'outgoing'
    ORDER BY m.server_id, m.id FOR UPDATE OF m";

table! { MarkedMessages, "UPDATE messages SET last_seq = row.last_seq, marks = row.marks
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS row (server_id, id, last_seq, marks)
    WHERE messages.server_id = row.server_id AND messages.id = row.id",
    server_id: i64, id: i64, last_seq: i64, marks: i64,
}

#[derive(Default)]
struct Changes<'a> {
    marks: MarkedMessages<'a>,
    events: Events<'a>,
    outbox: Outbox<'a>,
}

impl Engine {
    /// All or none. Fenced by the lease.
    pub(crate) async fn record_tracking_events(
        &self,
        mut hits: Vec<NewTrackingEvent>,
        simulator_domain: &DomainName,
    ) -> Result<(), StoreError> {
        if hits.is_empty() {
            return Ok(());
        }
        sort(&mut hits);
        let node = self.database.node()?;
        // Event ids are new; their week may be too.
        let next_id = node.ids.next();
        self.database.partitions.ensure(&self.database.pool, next_id, next_id).await?;
        let in_use = self.database.in_use().await?;
        let recorded = bounded(Box::pin(record(in_use.client(), &node, &hits, simulator_domain))).await;
        recorded?;
        in_use.done();
        Ok(())
    }
}

/// When it returns `Ok`, the transaction is committed.
async fn record(
    client: &ClientWrapper,
    node: &Node,
    hits: &[NewTrackingEvent],
    simulator_domain: &DomainName,
) -> Result<(), StoreError> {
    let mut standings = lock(client, hits).await?;
    let mut changes = Changes::default();
    let mut suppressed = Vec::new();
    for of_message in hits.chunk_by(|one, next| key(one) == key(next)) {
        let mut standing = standings.remove(&key(&of_message[0]));
        if let Some(standing) = &mut standing {
            changes.add_message(of_message, standing, &node.ids);
        }
        let new = |hit| suppression(hit, standing.as_ref(), simulator_domain).map(|new| (hit, new));
        suppressed.extend(of_message.iter().filter_map(new));
    }
    let mut suppressions = Suppressions::default();
    for (hit, new) in &suppressed {
        suppressions.add(hit.server_id, new, hit.at.max(node.ids.now()));
    }
    let (number, lane, last_id) = (i64::from(node.number), Lane::Finish as i64, node.ids.last());
    let tables = [changes.events.statement(), changes.outbox.statement()];
    let shared =
        [suppressions.statement(), Some((lease::NOTE_IDS, vec![&number, &lane, &node.epoch, &last_id]))];
    let flight = Flight {
        begin: None,
        planned_each_time: changes.marks.statement().into_iter().collect(),
        together: tables.into_iter().flatten().collect(),
        in_order: shared.into_iter().flatten().collect(),
    };
    flight::commit(client, flight).await
}

fn key(hit: &NewTrackingEvent) -> Key {
    (hit.server_id, hit.message_id)
}

async fn lock(
    client: &ClientWrapper,
    hits: &[NewTrackingEvent],
) -> Result<HashMap<Key, Standing>, StoreError> {
    let mut keys: Vec<Key> = hits.iter().map(key).collect();
    // Sorted they are.
    keys.dedup();
    let (servers, messages) = columns(&keys);
    let statement = client.prepare_cached(LOCK).await?;
    let params: [&(dyn ToSql + Sync); 2] = [&servers, &messages];
    let (begun, rows) = join(client.batch_execute("BEGIN"), client.query(&statement, &params)).await;
    begun?;
    rows?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<(Key, Standing), StoreError> {
    let status: &str = row.get(4);
    let status = Status::parse(status)
        .ok_or_else(|| StoreError::Internal(format!("a message has the status {status:?}")))?;
    let standing = Standing {
        last_seq: row.get(2),
        marks: row.get(3),
        status,
        last_delivery_at: row.get::<_, Option<i64>>(5).map(Timestamp::from_micros),
        test: row.get::<_, i64>(6) != 0,
    };
    Ok(((ServerId(row.get(0)), MessageId(row.get(1))), standing))
}

impl Changes<'_> {
    /// All hits of one message.
    fn add_message(&mut self, hits: &[NewTrackingEvent], standing: &mut Standing, ids: &IdGenerator) {
        let seq_before = standing.last_seq;
        for hit in hits {
            if let Some(event) = standing.take(hit) {
                self.add_event(hit, standing, event, ids.next());
            }
        }
        if let Some(hit) = hits.first().filter(|_| standing.last_seq > seq_before) {
            let to = &mut self.marks;
            to.server_id.push(hit.server_id.0);
            to.id.push(hit.message_id.0);
            to.last_seq.push(standing.last_seq);
            to.marks.push(standing.marks);
        }
    }

    fn add_event(&mut self, hit: &NewTrackingEvent, standing: &Standing, event: NewEvent, id: i64) {
        let (server, at) = (hit.server_id.0, hit.at.as_micros());
        self.outbox.add(server, id, at, event.kind);
        let to = &mut self.events;
        to.server_id.push(server);
        to.id.push(id);
        to.message_id.push(hit.message_id.0);
        to.seq.push(standing.last_seq);
        to.kind.push(event.kind.as_str());
        to.at.push(at);
        to.test.push(i64::from(standing.test));
        // JSON, which has no NUL.
        to.data.push(Cow::Owned(event.data));
    }
}
