//! Holds scheduled messages that become due, if their server is in development or a limit is reached.

use std::collections::{BTreeMap, HashSet};

use postroad_model::{IdGenerator, MessageId, ServerId, ServerMode, Status, Timestamp};

use super::holds;
use super::waiting::Key;
use crate::accept::initial::{HoldCause, HoldCauses, SCHEDULED, hold_beyond, hour_at};
use crate::accept::{AccountLimits, account_periods, hourly_limit};
use crate::error::StoreError;
use crate::events::{NewEvent, append};
use crate::outcomes::NewDelivery;
use crate::sql::{Row, Sql};

/// A scheduled queue entry that is due.
pub(super) struct DueEntry {
    pub(super) key: Key,
    pub(super) due_at: Timestamp,
    /// Whether the message counts against limits now; `false` if it is exempt or was counted before.
    is_counted: bool,
    /// Whether somebody released the message from a hold. If so, the mode of its server does not hold it again.
    is_released: bool,
}

impl DueEntry {
    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        let key = (ServerId(row.int(0)?), MessageId(row.int(1)?));
        let (is_counted, is_released) = (row.int(3)? == SCHEDULED, row.time_opt(4)?.is_some());
        Ok(Self { key, due_at: row.time(2)?, is_counted, is_released })
    }

    fn message_id(&self) -> MessageId {
        self.key.1
    }
}

/// Counts the messages in the current hour of their servers and the periods of their accounts. Holds messages beyond
/// the limits. Also holds messages of servers in development, without counting them, unless somebody released them
/// before. Every transaction locks the hours of servers first, then the periods of accounts, and servers last. Returns
/// the held messages.
pub(super) async fn count_and_hold(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    due: &[DueEntry],
    now: Timestamp,
) -> Result<HashSet<Key>, StoreError> {
    let mut by_server: BTreeMap<ServerId, Vec<&DueEntry>> = BTreeMap::new();
    for entry in due {
        let (server_id, _) = entry.key;
        by_server.entry(server_id).or_default().push(entry);
    }
    let mut causes = HoldCauses::new();
    let mut events = Vec::new();
    let mut accounts: BTreeMap<i64, (AccountLimits, Vec<MessageId>)> = BTreeMap::new();
    for (server_id, entries) in by_server {
        let text =
            "SELECT a.id, a.hourly_limit, a.daily_limit, a.monthly_limit, s.hourly_limit, s.name, s.mode
                    FROM servers s JOIN accounts a ON a.id = s.account_id WHERE s.id = $1";
        let Some(server) = sql.query_opt(text, &[server_id.0.into()]).await? else { continue };
        if server.parsed(6, ServerMode::parse)? == ServerMode::Development {
            let held = entries.iter().filter(|entry| !entry.is_released);
            causes.extend(held.map(|entry| (entry.message_id(), HoldCause::Development)));
        }
        let counted =
            entries.iter().filter(|entry| entry.is_counted && !causes.contains_key(&entry.message_id()));
        let messages: Vec<MessageId> = counted.map(|entry| entry.message_id()).collect();
        if messages.is_empty() {
            continue;
        }
        if let Some(limit) = server.int_opt(4)?.and_then(|limit| u32::try_from(limit).ok()) {
            let before = count_hour(sql, server_id, messages.len() as i64, now).await?;
            hold_beyond(limit, before, &messages, &mut causes);
            let after = before + messages.len() as i64;
            let name = server.text(5)?;
            let with_server = |event: NewEvent| hourly_limit::with_server(&event, server_id, Some(&name));
            let threshold_events = hourly_limit::threshold_events(limit, hour_at(now), before, after);
            events.extend(threshold_events.into_iter().map(|event| (server_id, with_server(event))));
        }
        if let Some(limits) = account_periods::read(&server, 0)? {
            let not_held = messages.iter().filter(|id| !causes.contains_key(*id));
            let (_, account_messages) =
                accounts.entry(limits.account_id.0).or_insert_with(|| (limits, Vec::new()));
            account_messages.extend(not_held);
        }
    }
    for (limits, messages) in accounts.values().filter(|(_, messages)| !messages.is_empty()) {
        let admission = account_periods::count(sql, limits, messages.len(), now).await?;
        admission.hold_beyond(messages, &mut causes);
    }
    for (server_id, event) in events {
        append::append_server_event(sql, ids, server_id, &event, now).await?;
    }
    let mut held = HashSet::new();
    for entry in due {
        let Some(cause) = causes.get(&entry.message_id()) else { continue };
        let (details, event, expiry) = cause.hold(now);
        let delivery = NewDelivery::local(now, Status::Held, details);
        if holds::hold(sql, ids, entry.key, &delivery, &event, expiry).await? {
            held.insert(entry.key);
        }
    }
    Ok(held)
}

/// Adds `added` to the message count of a server's current hour; returns the count before. The first call in an hour
/// deletes the counts of all hours before the previous hour.
async fn count_hour(
    sql: &Sql<'_>,
    server_id: ServerId,
    added: i64,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let hour = hour_at(now);
    let total = sql
        .query_opt(
            "INSERT INTO server_hours (server_id, hour, messages) VALUES ($1, $2, $3)
             ON CONFLICT (server_id, hour) DO UPDATE SET messages = server_hours.messages + excluded.messages
             RETURNING messages",
            &[server_id.0.into(), hour.into(), added.into()],
        )
        .await?;
    let total = total
        .ok_or_else(|| StoreError::Internal("counting messages of a server returned no row".into()))?
        .int(0)?;
    let before = total - added;
    if before == 0 {
        let text = "DELETE FROM server_hours WHERE server_id = $1 AND hour < $2";
        sql.execute(text, &[server_id.0.into(), (hour - 1).into()]).await?;
    }
    Ok(before)
}
