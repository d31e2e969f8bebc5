//! A batch of accepts as one transaction: a few queries find the hold causes, then one round trip writes everything and
//! commits. Before that, idempotency keys need one or two round trips, and large bodies one for each piece.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::ClientWrapper;
use postroad_model::{EventId, MessageId, ServerId, idgen};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::columns::{Bodies, Columns, RowContext, is_large_body};
use super::generic_plans::BEGIN_WITH_GENERIC_PLANS;
use super::hold_causes::HoldDecision;
use super::pipeline::Pipeline;
use super::{BatchKind, Database, Node, hold_causes, lease, pipeline, with_timeout_for};
use crate::accept::hand_over::Sink;
use crate::accept::{Accepted, NewSend};
use crate::error::StoreError;
use crate::idempotency::{self, StoredAnswer};

/// Result of one send of the batch.
#[derive(Debug, Clone)]
pub(super) struct AcceptOutcome {
    pub(super) accepted: Accepted,
    /// Messages that were claimed for this node and will be handed over to delivery.
    pub(super) claimed: Vec<MessageId>,
}

/// Inserts the keys that are not in use, and returns them. Rows are sorted, to avoid deadlocks between nodes. A key can
/// be used again once it has expired, also if it was erased and only its hash is stored.
const INSERT_KEYS: &str =
    "INSERT INTO idempotency_keys AS known (server_id, key, fingerprint, answer, expires_at)
    SELECT server_id, key, fingerprint, answer, expires_at
        FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::text[], $5::bigint[], $7::text[])
        AS row (server_id, key, fingerprint, answer, expires_at, erased)
        WHERE (SELECT 1 FROM idempotency_keys AS hashed
            WHERE hashed.server_id = row.server_id AND hashed.key = row.erased AND hashed.expires_at > $6 LIMIT 1) IS NULL
        ORDER BY server_id, key
    ON CONFLICT (server_id, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at
        WHERE known.expires_at <= $6
    RETURNING server_id, key";

const FIND_KEYS: &str = "SELECT known.server_id, wanted.key, fingerprint, answer
    FROM unnest($1::bigint[], $2::text[], $3::text[]) AS wanted (server_id, key, erased)
    CROSS JOIN LATERAL (SELECT * FROM idempotency_keys AS known
        WHERE known.server_id = wanted.server_id AND known.key IN (wanted.key, wanted.erased)
        ORDER BY known.expires_at DESC LIMIT 1) AS known";

/// With more bytes of bodies than this, a batch sends the bodies before its other rows.
const BODIES_TOGETHER_BYTES_MAX: usize = 8 << 20;

/// How idempotency keys apply to sends that are accepted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyScope {
    /// Each send has its own key, or none.
    Each,
    /// The key of the first send applies to all: if it was used before, none of the sends is new.
    First,
}

/// Accepts all of `sends` or none. When it returns `Ok`, the transaction is committed. Pending messages that `sink` has
/// room for are claimed for this node.
pub(super) async fn accept(
    database: &Database,
    kind: BatchKind,
    sends: &[NewSend],
    keys: KeyScope,
    sink: Option<&Sink>,
) -> Result<Vec<AcceptOutcome>, StoreError> {
    let node = database.node()?;
    let ids = || sends.iter().flat_map(|send| send.recipients.iter().map(|r| r.id.0).chain([send.info.id.0]));
    if ids().any(|id| idgen::node_of(id) != node.number) {
        // The ids were created under a lost lease; another node may create the same ones.
        return Err(lease::lost_error());
    }
    // The ids that this batch will create, for example for events, are soon after `newest`.
    let (oldest, newest) = (ids().min().unwrap_or(0), node.ids.next());
    database.partitions.ensure(&database.pool, oldest, newest).await?;
    let connection = database.connection().await?;
    let bytes = sends.iter().map(NewSend::weight).sum();
    let batch = Batch { database, node: &node, kind, sends, keys, sink };
    let outcomes = with_timeout_for(bytes, batch.write(connection.client())).await?;
    connection.done();
    Ok(outcomes)
}

struct Batch<'a> {
    database: &'a Database,
    node: &'a Node,
    kind: BatchKind,
    sends: &'a [NewSend],
    keys: KeyScope,
    sink: Option<&'a Sink>,
}

impl Batch<'_> {
    async fn write(&self, client: &ClientWrapper) -> Result<Vec<AcceptOutcome>, StoreError> {
        let mut in_transaction = false;
        let mut repeated = HashMap::new();
        if self.sends.iter().any(|send| send.idempotency.is_some()) {
            client.batch_execute(BEGIN_WITH_GENERIC_PLANS).await?;
            in_transaction = true;
            repeated = find_or_insert_keys(client, self.sends).await?;
        }
        let mut accepted: Vec<Accepted> = self
            .sends
            .iter()
            .map(|send| {
                let key = send.idempotency.as_ref().map(|key| (send.info.server_id, key.key.as_str()));
                match key.and_then(|key| repeated.remove(&key)) {
                    Some(answer) => Accepted::Repeated(answer),
                    None => Accepted::Stored(Vec::new()),
                }
            })
            .collect();
        if let (KeyScope::First, Some(repeated @ Accepted::Repeated(_))) =
            (self.keys, accepted.first().cloned())
        {
            accepted.fill(repeated);
        }
        let new_sends = || {
            let with_answers = self.sends.iter().zip(&accepted);
            with_answers.filter(|(_, accepted)| matches!(accepted, Accepted::Stored(_))).map(|(send, _)| send)
        };
        // Bodies are sent before `hold_causes::find` locks rows that other batches need.
        insert_large_bodies(client, &mut in_transaction, new_sends()).await?;
        let small_sizes = new_sends().filter(|send| !is_large_body(send)).map(|send| send.compressed().len());
        let sends_bodies_first = small_sizes.sum::<usize>() > BODIES_TOGETHER_BYTES_MAX;
        if sends_bodies_first {
            for group in Bodies::in_groups(new_sends()) {
                insert_bodies(client, &mut in_transaction, &group).await?;
            }
        }
        let HoldDecision { causes, server_events, uses } =
            hold_causes::find(client, &mut in_transaction, new_sends().collect()).await?;
        let (node, sink) = (self.node, self.sink);
        let bodies_were_sent = sends_bodies_first;
        let context = RowContext { ids: &node.ids, causes: &causes, node, sink, bodies_were_sent };
        let mut columns = Columns::of(new_sends(), &context);
        for event in server_events {
            columns.add_server_event(EventId(self.node.ids.next()), event);
        }
        let claimed = columns.claimed_keys();
        // The claims are recorded before the commit, because a later claim may release all claims that this node does
        // not know of.
        self.database.claims.add(claimed.iter().copied());
        let guard = CommitGuard { database: self.database, claimed: &claimed, is_done: false };
        self.insert(client, &columns, !in_transaction).await?;
        guard.done();
        let claimed: HashSet<MessageId> = claimed.into_iter().map(|(_, id)| id).collect();
        let outcomes = self.sends.iter().zip(accepted).map(|(send, accepted)| {
            let ids = send.recipients.iter().map(|recipient| recipient.id);
            let accepted = match accepted {
                Accepted::Stored(_) => Accepted::Stored(uses.of(send)),
                repeated @ Accepted::Repeated(_) => repeated,
            };
            AcceptOutcome { accepted, claimed: ids.filter(|id| claimed.contains(id)).collect() }
        });
        Ok(outcomes.collect())
    }

    async fn insert(
        &self,
        client: &ClientWrapper,
        columns: &Columns<'_>,
        begin: bool,
    ) -> Result<(), StoreError> {
        let (number, kind) = (i64::from(self.node.number), self.kind as i64);
        let last_id = self.node.ids.last();
        let [events, outbox] = columns.events.statements();
        let tables = [
            columns.sends.statement(),
            columns.bodies.statement(),
            columns.messages.statement(),
            columns.queue.statement(),
            events,
            outbox,
            columns.deliveries.statement(),
        ];
        let pipeline = Pipeline {
            begin: begin.then_some(BEGIN_WITH_GENERIC_PLANS),
            together: tables.into_iter().flatten().collect(),
            in_order: vec![(lease::STORE_LAST_ID, vec![&number, &kind, &self.node.epoch, &last_id])],
            ..Pipeline::default()
        };
        pipeline::commit(client, pipeline).await
    }
}

/// Sends large bodies before the batch, one piece per statement, because a connection keeps twice the memory of the
/// largest pipeline it ever sent.
async fn insert_large_bodies(
    client: &ClientWrapper,
    in_transaction: &mut bool,
    sends: impl Iterator<Item = &NewSend>,
) -> Result<(), StoreError> {
    for send in sends.filter(|send| is_large_body(send)) {
        for piece in Bodies::pieces_of(send) {
            insert_bodies(client, in_transaction, &piece).await?;
        }
    }
    Ok(())
}

async fn insert_bodies(
    client: &ClientWrapper,
    in_transaction: &mut bool,
    bodies: &Bodies<'_>,
) -> Result<(), StoreError> {
    let Some((text, params)) = bodies.statement() else { return Ok(()) };
    if !*in_transaction {
        client.batch_execute(BEGIN_WITH_GENERIC_PLANS).await?;
        *in_transaction = true;
    }
    let statement = client.prepare_cached(text).await?;
    client.execute(&statement, &params).await?;
    Ok(())
}

/// Reports the batch's claims as lost if the guard is dropped before `done`: the commit may have claimed messages that
/// nobody works on.
struct CommitGuard<'a> {
    database: &'a Database,
    claimed: &'a [(ServerId, MessageId)],
    is_done: bool,
}

impl CommitGuard<'_> {
    fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for CommitGuard<'_> {
    fn drop(&mut self) {
        if !self.is_done && !self.claimed.is_empty() {
            self.database.claims.note_lost_accept(self.claimed);
        }
    }
}

/// Writes the batch's idempotency keys; returns the stored answers of keys that were used before.
async fn find_or_insert_keys<'a>(
    client: &ClientWrapper,
    sends: &'a [NewSend],
) -> Result<HashMap<(ServerId, &'a str), StoredAnswer>, StoreError> {
    let keyed = || sends.iter().filter_map(|send| Some((send, send.idempotency.as_ref()?)));
    let servers: Vec<i64> = keyed().map(|(send, _)| send.info.server_id.0).collect();
    let keys: Vec<&str> = keyed().map(|(_, key)| key.key.as_str()).collect();
    let erased: Vec<String> =
        keyed().map(|(send, key)| idempotency::erased_key(send.info.server_id, &key.key)).collect();
    let fingerprints: Vec<&[u8]> = keyed().map(|(_, key)| &key.fingerprint[..]).collect();
    let answers: Vec<&str> = keyed().map(|(_, key)| key.answer.as_str()).collect();
    let expiries: Vec<i64> = keyed().map(|(_, key)| key.expires_at.as_micros()).collect();
    let now = keyed().map(|(send, _)| send.info.created_at.as_micros()).max().unwrap_or_default();
    let insert = client.prepare_cached(INSERT_KEYS).await?;
    let params: [&(dyn ToSql + Sync); 7] =
        [&servers, &keys, &fingerprints, &answers, &expiries, &now, &erased];
    let rows = client.query(&insert, &params).await.map_err(|error| match error.code() {
        // Another transaction is writing one of these keys.
        Some(&SqlState::LOCK_NOT_AVAILABLE) => StoreError::KeyInUse,
        _ => error.into(),
    })?;
    if rows.len() == keys.len() {
        return Ok(HashMap::new());
    }
    let inserted: HashSet<(i64, &str)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    // The isolation level is read committed, so this statement sees the rows of the transaction that the insert waited
    // for.
    let find = client.prepare_cached(FIND_KEYS).await?;
    let mut stored = HashMap::new();
    for row in client.query(&find, &[&servers, &keys, &erased]).await? {
        let fingerprint: Vec<u8> = row.get(2);
        let fingerprint = fingerprint
            .try_into()
            .map_err(|_| StoreError::Internal("a fingerprint is not 32 bytes".into()))?;
        let answer = StoredAnswer { fingerprint, answer: row.get(3) };
        stored.insert((row.get::<_, i64>(0), row.get::<_, String>(1)), answer);
    }
    let mut repeated = HashMap::new();
    for (send, key) in keyed().filter(|(send, key)| !inserted.contains(&(send.info.server_id.0, &key.key))) {
        let found = stored.remove(&(send.info.server_id.0, key.key.clone()));
        // The key existed a moment ago. Another node has purged it since, because it has expired by that node's clock.
        let found = found.ok_or(StoreError::KeyInUse)?;
        repeated.insert((send.info.server_id, key.key.as_str()), found);
    }
    Ok(repeated)
}
