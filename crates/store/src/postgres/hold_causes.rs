//! Causes to hold recipients of a batch: one query for all suppressions, one for all hourly limits of servers, and one
//! for limits of accounts (`account_counts.rs`); further queries only if a limit is reached or nearly reached.

use std::collections::{BTreeMap, HashMap};

use deadpool_postgres::ClientWrapper;
use postroad_model::{AccountId, LimitPeriod, MessageId, ServerId, SuppressionReason, Timestamp};

use super::account_counts;
use super::pipeline::query;
use crate::accept::initial::{
    HoldCause, HoldCauses, ServerHour, counted_recipients, hold_beyond, hour_of, may_be_held,
};
use crate::accept::limit_values::Window;
use crate::accept::{LimitOwner, LimitUse, NewSend, hourly_limit};
use crate::error::StoreError;
use crate::events::NewEvent;
use crate::suppressions::record::{erased_key, recipient_key};

/// Finds a suppression as the first row at or after the wanted address, if the addresses are equal. Only the right
/// index has this order. Other indexes contain server and address with another column in between, and look equally
/// cheap to a planner that believes the table to be empty.
const FIND: &str = "SELECT known.server_id, known.address, reason, details, created_at
    FROM unnest($1::bigint[], $2::text[]) AS wanted (server_id, address)
    CROSS JOIN LATERAL (SELECT * FROM suppressions AS known
        WHERE known.server_id = wanted.server_id AND known.address >= wanted.address
        ORDER BY known.address LIMIT 1) AS known
    WHERE known.address = wanted.address AND (expires_at IS NULL OR expires_at > $3)";

/// Adds to the counts of hours, in sorted order to avoid deadlocks between nodes. Deletes hours before the previous
/// one.
const COUNT: &str = "WITH row AS (
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS row (server_id, hour, messages)),
    old AS (
        DELETE FROM server_hours WHERE ctid = ANY (ARRAY(
            SELECT place FROM row CROSS JOIN LATERAL (SELECT hours.ctid AS place FROM server_hours hours
                WHERE hours.server_id = row.server_id AND hours.hour < row.hour - 1 OFFSET 0) AS found)))
    INSERT INTO server_hours AS known (server_id, hour, messages)
    SELECT server_id, hour, messages FROM row ORDER BY server_id, hour
    ON CONFLICT (server_id, hour) DO UPDATE SET messages = known.messages + excluded.messages
    RETURNING server_id, hour, messages";

const LOCK_SERVER: &str = "SELECT name FROM servers WHERE id = $1 FOR NO KEY UPDATE";

const LAST_SEQ: &str = "SELECT coalesce(max(seq), 0) FROM events WHERE server_id = $1 AND message_id = 0";

/// Hold causes and events of a batch, and the usage of limits.
pub(super) struct HoldDecision {
    pub(super) causes: HoldCauses,
    /// Events to write with the batch.
    pub(super) server_events: Vec<ServerEvent>,
    pub(super) uses: LimitUses,
}

/// Usage of the limits after the batch.
#[derive(Default)]
pub(super) struct LimitUses {
    of_servers: HashMap<ServerId, LimitUse>,
    of_accounts: HashMap<AccountId, Vec<LimitUse>>,
}

impl LimitUses {
    /// Usage of the limits that a send counts against.
    pub(super) fn of(&self, send: &NewSend) -> Vec<LimitUse> {
        let no_causes = HoldCauses::new();
        if counted_recipients(send, &no_causes).next().is_none() {
            return Vec::new();
        }
        let of_server = send.hourly_limit.and_then(|_| self.of_servers.get(&send.info.server_id));
        let account = send.account_limits.map(|limits| limits.account_id);
        let of_account = account.and_then(|id| self.of_accounts.get(&id)).into_iter().flatten();
        of_server.into_iter().chain(of_account).copied().collect()
    }
}

/// An event about a server, not a message. Such events have their own `seq`.
pub(super) struct ServerEvent {
    pub(super) server_id: ServerId,
    pub(super) seq: i64,
    pub(super) at: Timestamp,
    pub(super) event: NewEvent,
}

/// Messages that a batch adds to an hour of a server.
struct AddedMessages {
    limit: u32,
    /// Time of the latest send.
    at: Timestamp,
    messages: Vec<MessageId>,
}

/// Finds the hold causes of a batch. Begins the transaction if it needs a query.
pub(super) async fn find(
    client: &ClientWrapper,
    in_transaction: &mut bool,
    sends: Vec<&NewSend>,
) -> Result<HoldDecision, StoreError> {
    let mut causes = find_suppressed(client, in_transaction, &sends).await?;
    let mut hours: BTreeMap<ServerHour, AddedMessages> = BTreeMap::new();
    for send in &sends {
        let Some(limit) = send.hourly_limit else { continue };
        if counted_recipients(send, &causes).next().is_none() {
            continue;
        }
        let at = send.info.created_at;
        let empty = AddedMessages { limit, at, messages: Vec::new() };
        let entry = hours.entry((send.info.server_id, hour_of(send))).or_insert(empty);
        (entry.limit, entry.at) = (limit, at.max(entry.at));
        entry.messages.extend(counted_recipients(send, &causes).map(|recipient| recipient.id));
    }
    let (mut threshold_events, mut uses) = (Vec::new(), LimitUses::default());
    if !hours.is_empty() {
        for ((server_id, hour), before) in count(client, in_transaction, &hours).await? {
            let Some(AddedMessages { limit, at, messages }) = hours.get(&(server_id, hour)) else { continue };
            hold_beyond(*limit, before, messages, &mut causes);
            let after = before + messages.len() as i64;
            threshold_events.push((
                server_id,
                *at,
                hourly_limit::threshold_events(*limit, hour, before, after),
            ));
            let window = Window { period: LimitPeriod::Hour, number: hour, limit: *limit };
            uses.of_servers.insert(server_id, LimitUse::new(LimitOwner::Server, window, after, *at));
        }
    }
    uses.of_accounts = account_counts::hold_beyond(client, in_transaction, &sends, &mut causes).await?;
    // Every transaction locks the hours of servers first, then the periods of accounts, and servers last.
    let mut server_events = Vec::new();
    for (server_id, at, events) in threshold_events {
        server_events.extend(number_events(client, server_id, at, events).await?);
    }
    Ok(HoldDecision { causes, server_events, uses })
}

/// Assigns `seq` to events of a server. The caller has locked the hour, so no other node writes an event of this limit
/// now. Locks the server, so that no other node numbers an event of the server.
async fn number_events(
    client: &ClientWrapper,
    server_id: ServerId,
    at: Timestamp,
    events: Vec<NewEvent>,
) -> Result<Vec<ServerEvent>, StoreError> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let statement = client.prepare_cached(LOCK_SERVER).await?;
    let name: Option<String> = client.query_opt(&statement, &[&server_id.0]).await?.map(|row| row.get(0));
    let statement = client.prepare_cached(LAST_SEQ).await?;
    let last: i64 = client.query_one(&statement, &[&server_id.0]).await?.get(0);
    let with_server =
        events.into_iter().map(|event| hourly_limit::with_server(&event, server_id, name.as_deref()));
    let numbered = with_server.zip(last + 1..);
    Ok(numbered.map(|(event, seq)| ServerEvent { server_id, seq, at, event }).collect())
}

/// Hold causes of the suppressed recipients.
async fn find_suppressed(
    client: &ClientWrapper,
    in_transaction: &mut bool,
    sends: &[&NewSend],
) -> Result<HoldCauses, StoreError> {
    let mut wanted: HashMap<(i64, String), Vec<MessageId>> = HashMap::new();
    for send in sends {
        for recipient in send.recipients.iter().filter(|recipient| may_be_held(send, recipient)) {
            let server_id = send.info.server_id;
            let key = recipient_key(&recipient.rcpt_to, &recipient.domain);
            let erased = erased_key(server_id, &key);
            wanted.entry((server_id.0, key)).or_default().push(recipient.id);
            wanted.entry((server_id.0, erased)).or_default().push(recipient.id);
        }
    }
    let mut causes = HoldCauses::new();
    if wanted.is_empty() {
        return Ok(causes);
    }
    let (servers, addresses): (Vec<i64>, Vec<&str>) =
        wanted.keys().map(|(server, address)| (*server, address.as_str())).unzip();
    let now = sends.iter().map(|send| send.info.created_at.as_micros()).max().unwrap_or_default();
    let rows = query(client, in_transaction, FIND, &[&servers, &addresses, &now]).await?;
    for row in rows {
        let reason: &str = row.get(2);
        let reason = SuppressionReason::parse(reason).ok_or_else(|| {
            StoreError::Internal(format!("a suppression has the unknown reason {reason:?}"))
        })?;
        let (details, since) = (row.get(3), Timestamp::from_micros(row.get(4)));
        let cause = HoldCause::Suppressed { reason, details, since };
        for id in wanted.get(&(row.get(0), row.get(1))).into_iter().flatten() {
            causes.insert(*id, cause.clone());
        }
    }
    Ok(causes)
}

/// Adds to the counts of the servers' hours; returns the counts before the addition.
async fn count(
    client: &ClientWrapper,
    in_transaction: &mut bool,
    hours: &BTreeMap<ServerHour, AddedMessages>,
) -> Result<Vec<(ServerHour, i64)>, StoreError> {
    let servers: Vec<i64> = hours.keys().map(|(server_id, _)| server_id.0).collect();
    let numbers: Vec<i64> = hours.keys().map(|(_, hour)| *hour).collect();
    let messages: Vec<i64> = hours.values().map(|added| added.messages.len() as i64).collect();
    let rows = query(client, in_transaction, COUNT, &[&servers, &numbers, &messages]).await?;
    let before = rows.iter().map(|row| {
        let hour = (ServerId(row.get(0)), row.get(1));
        let added = hours.get(&hour).map_or(0, |added| added.messages.len() as i64);
        (hour, row.get::<_, i64>(2) - added)
    });
    Ok(before.collect())
}
