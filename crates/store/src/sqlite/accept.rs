//! `accept` inside the writer's group: a few cached statements for each send and recipient.

use parking_lot::Mutex;
use postroad_model::{
    EventId, EventKind, IdGenerator, LimitPeriod, MessageId, ServerId, Status, SuppressionReason, Timestamp,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{insert_delivery, insert_event};
use crate::accept::account_limits::{Admission, WindowCount};
use crate::accept::initial::{
    HoldCause, HoldCauses, InitialRow, counted_recipients, hold_beyond, hour_of, may_be_held,
};
use crate::accept::limit_values::Window;
use crate::accept::{Accepted, AccountLimits, LimitOwner, LimitUse, NewRecipient, NewSend, hourly_limit};
use crate::error::StoreError;
use crate::events::NewEvent;
use crate::events::event::EventRow;
use crate::idempotency::{self, Idempotency, StoredAnswer};
use crate::messages::body::INLINE_BYTES_MAX;
use crate::outcomes::deliveries::DeliveryRow;
use crate::sql::to_json;
use crate::suppressions::record::{erased_key, recipient_key};

/// Result of accepting the sends of one caller.
pub(super) struct WrittenSends {
    pub(super) accepted: Accepted,
    /// Queue entries of the sends.
    pub(super) queued: Vec<QueuedEntry>,
}

pub(super) struct QueuedEntry {
    pub(super) message_id: MessageId,
    pub(super) due_at: Timestamp,
    /// Whether the entry is due now, not later.
    pub(super) pending: bool,
}

/// Writes one send, or all sends of a batch. The idempotency key of a batch is in its first send.
pub(super) fn accept(
    connection: &Mutex<Connection>,
    sends: &[NewSend],
    ids: &IdGenerator,
) -> Result<WrittenSends, StoreError> {
    let connection = &*connection.lock();
    if let Some(first) = sends.first()
        && let Some(key) = &first.idempotency
        && let Some(answer) = find_or_insert_key(connection, first, key)?
    {
        return Ok(WrittenSends { accepted: Accepted::Repeated(answer), queued: Vec::new() });
    }
    let (mut queued, mut uses) = (Vec::new(), Vec::new());
    for send in sends {
        insert_send(connection, send)?;
        let mut causes = find_suppressed(connection, send)?;
        let send_uses = hold_beyond_limits(connection, send, &mut causes, ids)?;
        // In a batch, the last send that counted has the final usage.
        if !send_uses.is_empty() {
            uses = send_uses;
        }
        for recipient in &send.recipients {
            let initial = InitialRow::of(send, recipient, &causes, ids);
            insert_recipient(connection, send, recipient, &initial, ids)?;
            if let Some(due_at) = initial.due_at {
                let pending = initial.status == Status::Pending;
                queued.push(QueuedEntry { message_id: recipient.id, due_at, pending });
            }
        }
    }
    Ok(WrittenSends { accepted: Accepted::Stored(uses), queued })
}

/// Hold causes of the suppressed recipients.
fn find_suppressed(connection: &Connection, send: &NewSend) -> Result<HoldCauses, StoreError> {
    let mut causes = HoldCauses::new();
    // `UNION ALL` is twice as fast as `IN` with both keys, for which SQLite would fill a temporary table.
    let mut find = connection.prepare_cached(
        "SELECT reason, details, created_at FROM suppressions
         WHERE server_id = ?1 AND address = ?2 AND (expires_at IS NULL OR expires_at > ?3)
         UNION ALL
         SELECT reason, details, created_at FROM suppressions
         WHERE server_id = ?1 AND address = ?4 AND (expires_at IS NULL OR expires_at > ?3)",
    )?;
    let (server, at) = (send.info.server_id.0, send.info.created_at.as_micros());
    for recipient in send.recipients.iter().filter(|recipient| may_be_held(send, recipient)) {
        let address = recipient_key(&recipient.rcpt_to, &recipient.domain);
        let erased = erased_key(send.info.server_id, &address);
        let found = find
            .query_row(params![server, address, at, erased], |row| {
                Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        if let Some((reason, details, since)) = found {
            let reason = SuppressionReason::parse(&reason).ok_or_else(|| {
                StoreError::Internal(format!("a suppression has the unknown reason {reason:?}"))
            })?;
            let since = Timestamp::from_micros(since);
            causes.insert(recipient.id, HoldCause::Suppressed { reason, details, since });
        }
    }
    Ok(causes)
}

/// Holds recipients beyond the limits of the server and its account; returns the usage of each limit.
fn hold_beyond_limits(
    connection: &Connection,
    send: &NewSend,
    causes: &mut HoldCauses,
    ids: &IdGenerator,
) -> Result<Vec<LimitUse>, StoreError> {
    let mut uses = Vec::new();
    if let Some(limit) = send.hourly_limit {
        let messages: Vec<MessageId> =
            counted_recipients(send, causes).map(|recipient| recipient.id).collect();
        if messages.is_empty() {
            return Ok(uses);
        }
        let (server_id, hour) = (send.info.server_id, hour_of(send));
        let before = count_hour(connection, send, messages.len() as i64)?;
        hold_beyond(limit, before, &messages, causes);
        let after = before + messages.len() as i64;
        for event in hourly_limit::threshold_events(limit, hour, before, after) {
            let name: Option<String> = connection
                .query_row("SELECT name FROM servers WHERE id = ?1", [server_id.0], |row| row.get(0))
                .optional()?;
            let event = hourly_limit::with_server(&event, server_id, name.as_deref());
            insert_server_event(connection, ids, server_id, event, send.info.created_at)?;
        }
        let window = Window { period: LimitPeriod::Hour, number: hour, limit };
        uses.push(LimitUse::new(LimitOwner::Server, window, after, send.info.created_at));
    }
    if let Some(limits) = &send.account_limits {
        let messages: Vec<MessageId> =
            counted_recipients(send, causes).map(|recipient| recipient.id).collect();
        if !messages.is_empty() {
            let admission = count_account(connection, limits, messages.len(), send.info.created_at)?;
            admission.hold_beyond(&messages, causes);
            uses.extend(admission.uses(send.info.created_at));
        }
    }
    Ok(uses)
}

/// Counts messages in the account's current windows, as far as they fit. The first count in a new window deletes the
/// rows of all windows before the previous one.
fn count_account(
    connection: &Connection,
    limits: &AccountLimits,
    requested: usize,
    at: Timestamp,
) -> Result<Admission, StoreError> {
    let account = limits.account_id.0;
    let mut find = connection.prepare_cached(
        "SELECT messages FROM account_periods WHERE account_id = ?1 AND period = ?2 AND number = ?3",
    )?;
    let mut counts = Vec::new();
    for window in limits.windows(at) {
        let before = find
            .query_row(params![account, window.period_code(), window.number], |row| row.get(0))
            .optional()?
            .unwrap_or(0);
        counts.push(WindowCount { window, before });
    }
    let admission = Admission::of(counts, requested);
    let admitted = admission.admitted as i64;
    for window in limits.windows(at).filter(|_| admitted > 0) {
        let total: i64 = connection
            .prepare_cached(
                "INSERT INTO account_periods (account_id, period, number, messages) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (account_id, period, number) DO UPDATE SET messages = messages + excluded.messages
                 RETURNING messages",
            )?
            .query_row(params![account, window.period_code(), window.number, admitted], |row| row.get(0))?;
        if total == admitted {
            connection
                .prepare_cached(
                    "DELETE FROM account_periods WHERE account_id = ?1 AND period = ?2 AND number < ?3",
                )?
                .execute(params![account, window.period_code(), window.number - 1])?;
        }
    }
    for event in admission.events() {
        connection
            .prepare_cached(
                "INSERT INTO account_notices (account_id, kind, data, at) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![account, event.kind.as_str(), event.data, at.as_micros()])?;
    }
    Ok(admission)
}

/// Adds messages to the count of the server's hour; returns the count before. The first count in a new hour deletes the
/// rows of all hours before the previous one.
fn count_hour(connection: &Connection, send: &NewSend, messages: i64) -> Result<i64, StoreError> {
    let (server, hour) = (send.info.server_id.0, hour_of(send));
    let total: i64 = connection
        .prepare_cached(
            "INSERT INTO server_hours (server_id, hour, messages) VALUES (?1, ?2, ?3)
             ON CONFLICT (server_id, hour) DO UPDATE SET messages = messages + excluded.messages
             RETURNING messages",
        )?
        .query_row(params![server, hour, messages], |row| row.get(0))?;
    let before = total - messages;
    if before == 0 {
        connection
            .prepare_cached("DELETE FROM server_hours WHERE server_id = ?1 AND hour < ?2")?
            .execute(params![server, hour - 1])?;
    }
    Ok(before)
}

/// Writes the key, or returns the answer that is stored with it. There is only one writer, so nobody else writes the
/// key between the read and the write.
fn find_or_insert_key(
    connection: &Connection,
    send: &NewSend,
    key: &Idempotency,
) -> Result<Option<StoredAnswer>, StoreError> {
    let (server_id, now) = (send.info.server_id, send.info.created_at.as_micros());
    let found = connection
        .prepare_cached(
            "SELECT fingerprint, answer FROM idempotency_keys WHERE server_id = ?1 AND key = ?2 AND expires_at > ?3
             UNION ALL
             SELECT fingerprint, answer FROM idempotency_keys WHERE server_id = ?1 AND key = ?4 AND expires_at > ?3",
        )?
        .query_row(params![server_id.0, key.key, now, idempotency::erased_key(server_id, &key.key)], |row| {
            Ok(StoredAnswer { fingerprint: row.get(0)?, answer: row.get(1)? })
        })
        .optional()?;
    if found.is_none() {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO idempotency_keys (server_id, key, fingerprint, answer, expires_at)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                server_id.0,
                key.key,
                key.fingerprint,
                key.answer,
                key.expires_at.as_micros()
            ])?;
    }
    Ok(found)
}

fn insert_send(connection: &Connection, send: &NewSend) -> Result<(), StoreError> {
    let info = &send.info;
    connection
        .prepare_cached(
            "INSERT INTO sends (server_id, id, credential_id, message_id, mail_from, subject, tag, metadata, options,
                                size, direction, bounce, received_with_ssl, test, created_at, from_domain, batch_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?
        .execute(params![
            info.server_id.0,
            info.id.0,
            info.credential_id.map(|id| id.0),
            info.message_id,
            info.mail_from,
            info.subject,
            info.tag,
            to_json(&info.metadata),
            to_json(&info.options),
            info.size as i64,
            info.direction.as_str(),
            info.bounce,
            info.received_with_ssl,
            info.test,
            info.created_at.as_micros(),
            info.from_domain,
            send.batch_id.map(|id| id.0),
        ])?;
    let inline = Some(&send.compressed()[..]).filter(|data| data.len() <= INLINE_BYTES_MAX);
    connection
        .prepare_cached("INSERT INTO bodies (send_id, data) VALUES (?1, ?2)")?
        .execute(params![info.id.0, inline])?;
    Ok(())
}

fn insert_recipient(
    connection: &Connection,
    send: &NewSend,
    recipient: &NewRecipient,
    initial: &InitialRow<'_>,
    ids: &IdGenerator,
) -> Result<(), StoreError> {
    let (server, message, at) = (send.info.server_id.0, recipient.id.0, send.info.created_at.as_micros());
    connection
        .prepare_cached(
            "INSERT INTO messages (server_id, id, send_id, token, rcpt_to, status, hold_expiry, bounce_for_id,
                                   last_delivery_at, last_seq)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9)",
        )?
        .execute(params![
            server,
            message,
            send.info.id.0,
            recipient.token.0,
            recipient.rcpt_to,
            initial.status.as_str(),
            initial.hold_expiry.map(Timestamp::as_micros),
            initial.delivery.is_some().then_some(at),
            initial.last_seq(),
        ])?;
    let event = |seq, kind, data| EventRow {
        server_id: send.info.server_id,
        message_id: recipient.id,
        id: EventId(ids.next()),
        seq,
        kind,
        at: send.info.created_at,
        test: send.info.test,
        data,
    };
    insert_event(connection, &event(1, EventKind::Accepted, "{}".into()))?;
    if let Some(due_at) = initial.due_at {
        connection
            .prepare_cached(
                "INSERT INTO queue (server_id, message_id, domain, due_at, expires_at, attempts, pool_id, scheduled)
                 VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7)",
            )?
            .execute(params![
                server,
                message,
                recipient.domain.as_str(),
                due_at.as_micros(),
                send.info.options.expires_at.map(Timestamp::as_micros),
                send.info.options.pool_id.map(|id| id.0),
                initial.scheduled,
            ])?;
    }
    if let Some(first) = &initial.delivery {
        let key = (send.info.server_id, recipient.id);
        let (at, details) = (send.info.created_at, first.details.as_ref());
        let row = DeliveryRow::local(key, first.id, at, initial.status, details);
        insert_delivery(connection, &row)?;
        insert_event(connection, &event(2, first.event.kind, first.event.data.as_str().into()))?;
    }
    Ok(())
}

/// Appends an event about a server, not a message. Such events have their own `seq`.
fn insert_server_event(
    connection: &Connection,
    ids: &IdGenerator,
    server_id: ServerId,
    event: NewEvent,
    at: Timestamp,
) -> Result<(), StoreError> {
    let last: i64 = connection
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM events WHERE server_id = ?1 AND message_id = 0")?
        .query_row([server_id.0], |row| row.get(0))?;
    let row = EventRow {
        server_id,
        message_id: MessageId(0),
        id: EventId(ids.next()),
        seq: last + 1,
        kind: event.kind,
        at,
        test: false,
        data: event.data.into(),
    };
    insert_event(connection, &row)
}
