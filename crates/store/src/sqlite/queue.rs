//! Claims and begins queue entries on SQLite. Claims are kept in memory (`claims.rs`), not in the table: no other
//! process uses the store.

use parking_lot::Mutex;
use postroad_model::{DomainName, MessageId, PoolId, ServerId, SourceId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::claims::{Claims, Key};
use super::ready;
use crate::error::StoreError;
use crate::messages::message;
use crate::queue::{BeginRequest, BeginResult, ClaimedEntry};
use crate::sql::Sql;
use crate::suppressions::lookup;

/// Entries examined under one lock of the claims.
const ENTRIES_PER_LOCK: usize = 256;

pub(super) fn claim(
    connection: &Mutex<Connection>,
    claims: &Mutex<Claims>,
    due_by: Timestamp,
    limit: usize,
    skip_servers: &[ServerId],
) -> Result<Vec<ClaimedEntry>, StoreError> {
    let connection = connection.lock();
    let mut claimed = Vec::new();
    claims.lock().set_skipped(skip_servers);
    let filled = take_behind(&connection, claims, due_by, limit, &mut claimed)
        .and_then(|()| take_ahead(&connection, claims, due_by, limit, &mut claimed));
    if let Err(error) = filled {
        release(claims, claimed.iter().map(ClaimedEntry::key));
        return Err(error);
    }
    Ok(claimed)
}

/// Claims entries that returned, or were added, before the cursor: they are due before all entries after the cursor.
fn take_behind(
    connection: &Connection,
    claims: &Mutex<Claims>,
    due_by: Timestamp,
    limit: usize,
    claimed: &mut Vec<ClaimedEntry>,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT server_id, message_id, domain, due_at, expires_at, attempts, pool_id, source_id FROM queue
         WHERE server_id = ?1 AND message_id = ?2 AND due_at = ?3 AND scheduled = 0",
    )?;
    while claimed.len() < limit {
        let mut claims = claims.lock();
        let Some(entry) = claims.first_behind(due_by) else { break };
        let ((due_at, message_id), server_id) = entry;
        let found = statement
            .query_row(params![server_id.0, message_id.0, due_at.as_micros()], |row| Ok(read(row)))
            .optional()?;
        claims.forget_behind(&entry);
        // No row: the entry was settled, is due at another time, or is still scheduled. It is noted in `Claims` again
        // when it becomes claimable.
        if let Some(found) = found.transpose()?
            && claims.take(found.key(), found.due_at)
        {
            claimed.push(found);
        }
    }
    Ok(())
}

/// Claims entries after the cursor, and advances it.
fn take_ahead(
    connection: &Connection,
    claims: &Mutex<Claims>,
    due_by: Timestamp,
    limit: usize,
    claimed: &mut Vec<ClaimedEntry>,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT server_id, message_id, domain, due_at, expires_at, attempts, pool_id, source_id, scheduled FROM queue
         WHERE (due_at, message_id) > (?1, ?2) AND due_at <= ?3 ORDER BY due_at, message_id LIMIT ?4",
    )?;
    while claimed.len() < limit {
        // Locked before the read begins: entries in the table that nobody has claimed at that moment are free.
        let mut claims = claims.lock();
        let (after, after_id) = claims.cursor();
        let mut rows = statement.query(params![
            after.as_micros(),
            after_id.0,
            due_by.as_micros(),
            ENTRIES_PER_LOCK as i64
        ])?;
        let mut seen = 0;
        while claimed.len() < limit
            && let Some(row) = rows.next()?
        {
            seen += 1;
            let found = read(row)?;
            claims.advance((found.due_at, found.message_id));
            // A scheduled entry is noted before the cursor when it becomes pending (`Claims::note_queued`).
            let is_scheduled = row.get::<_, i64>(8)? > 0;
            if !is_scheduled && claims.take(found.key(), found.due_at) {
                claimed.push(found);
            }
        }
        if seen < ENTRIES_PER_LOCK {
            break;
        }
    }
    Ok(())
}

fn read(row: &Row<'_>) -> Result<ClaimedEntry, StoreError> {
    let domain: String = row.get(2)?;
    Ok(ClaimedEntry {
        server_id: ServerId(row.get(0)?),
        message_id: MessageId(row.get(1)?),
        domain: DomainName::parse(&domain)
            .map_err(|e| StoreError::Internal(format!("a queue entry has the domain {domain:?}: {e}")))?,
        due_at: Timestamp::from_micros(row.get(3)?),
        expires_at: row.get::<_, Option<i64>>(4)?.map(Timestamp::from_micros),
        attempts: row.get(5)?,
        pool_id: row.get::<_, Option<i64>>(6)?.map(PoolId),
        source_id: row.get::<_, Option<i64>>(7)?.map(SourceId),
    })
}

/// Claims these entries if they are queued and unclaimed.
pub(super) fn adopt(
    connection: &Mutex<Connection>,
    claims: &Mutex<Claims>,
    keys: &[Key],
) -> Result<Vec<ClaimedEntry>, StoreError> {
    let connection = connection.lock();
    let mut statement = connection.prepare_cached(
        "SELECT server_id, message_id, domain, due_at, expires_at, attempts, pool_id, source_id FROM queue
         WHERE server_id = ?1 AND message_id = ?2",
    )?;
    let mut adopted = Vec::new();
    for (server_id, message_id) in keys {
        let mut claims = claims.lock();
        let found =
            statement.query_row(params![server_id.0, message_id.0], |row| Ok(read(row))).optional()?;
        if let Some(found) = found.transpose()?
            && claims.take(found.key(), found.due_at)
        {
            adopted.push(found);
        }
    }
    Ok(adopted)
}

/// First reads, then begins: a message cancelled in between is not begun.
pub(super) fn begin(
    connection: &Mutex<Connection>,
    claims: &Mutex<Claims>,
    entries: &[BeginRequest],
    now: Timestamp,
) -> Result<Vec<BeginResult>, StoreError> {
    let sql = Sql::Sqlite(connection);
    let mut answers = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut answer = BeginResult::Go(None);
        if entry.needs_message {
            answer = match ready(message::find(&sql, entry.server_id, entry.message_id))? {
                None => BeginResult::Gone,
                Some(message) => {
                    let address = message.rcpt_to.clone();
                    match ready(lookup::find(&sql, entry.server_id, address, now))? {
                        Some(found) => BeginResult::Suppressed(Box::new(message), found),
                        None => BeginResult::Go(Some(Box::new(message))),
                    }
                }
            };
        }
        answers.push(answer);
    }
    mark_begun(claims, entries, &mut answers);
    Ok(answers)
}

/// Begins messages that need not be read.
pub(super) fn begin_fresh(claims: &Mutex<Claims>, entries: &[BeginRequest]) -> Vec<BeginResult> {
    let mut answers = entries.iter().map(|_| BeginResult::Go(None)).collect::<Vec<_>>();
    mark_begun(claims, entries, &mut answers);
    answers
}

fn mark_begun(claims: &Mutex<Claims>, entries: &[BeginRequest], answers: &mut [BeginResult]) {
    let mut claims = claims.lock();
    for (entry, answer) in entries.iter().zip(answers) {
        let may_go = !matches!(answer, BeginResult::Gone);
        if !(may_go && claims.begin((entry.server_id, entry.message_id), entry.due_at)) {
            *answer = BeginResult::Gone;
        }
    }
}

/// Reverts `begin`, because the caller disconnected before it got the answers.
pub(super) fn undo_begin(claims: &Mutex<Claims>, entries: &[BeginRequest], answers: &[BeginResult]) {
    let mut claims = claims.lock();
    for (entry, answer) in entries.iter().zip(answers) {
        if !matches!(answer, BeginResult::Gone) {
            claims.undo_begin((entry.server_id, entry.message_id));
        }
    }
}

pub(super) fn release(claims: &Mutex<Claims>, keys: impl IntoIterator<Item = Key>) {
    let mut claims = claims.lock();
    for key in keys {
        claims.release(key);
    }
}
