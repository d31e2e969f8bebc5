//! Claims on SQLite: the table is the truth about what is due, memory knows what is being worked on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use postroad_model::{DomainName, MessageId, ServerId, Timestamp};
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::records::Claimed;

pub(super) type Key = (ServerId, MessageId);

/// Messages this process has claimed and neither finished nor released.
pub(crate) type Claims = HashMap<Key, Claim>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    Held,
    /// Its outcome is written but not committed: a second outcome comes too late, a new claim too early.
    Settling,
}

pub(super) fn claim(
    connection: &Mutex<Connection>,
    claims: &Mutex<Claims>,
    due_by: Timestamp,
    limit: usize,
) -> Result<Vec<Claimed>, StoreError> {
    let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
    let mut claims = claims.lock().unwrap_or_else(PoisonError::into_inner);
    let mut statement = connection.prepare_cached(
        "SELECT server_id, message_id, domain, due_at, expires_at, attempts FROM queue
         WHERE due_at <= ?1 ORDER BY due_at, message_id",
    )?;
    let mut rows = statement.query(params![due_by.as_micros()])?;
    let mut claimed = Vec::new();
    while claimed.len() < limit
        && let Some(row) = rows.next()?
    {
        let key = (ServerId(row.get(0)?), MessageId(row.get(1)?));
        if claims.contains_key(&key) {
            continue;
        }
        let domain: String = row.get(2)?;
        claimed.push(Claimed {
            server_id: key.0,
            message_id: key.1,
            domain: DomainName::parse(&domain)
                .map_err(|e| StoreError::Internal(format!("{domain:?}: {e}")))?,
            due_at: Timestamp::from_micros(row.get(3)?),
            expires_at: row.get::<_, Option<i64>>(4)?.map(Timestamp::from_micros),
            attempts: row.get(5)?,
        });
    }
    claims.extend(claimed.iter().map(|entry| ((entry.server_id, entry.message_id), Claim::Held)));
    Ok(claimed)
}

/// Whether the message is claimed and nobody else is settling it; from now on we are.
pub(super) fn begin_settling(claims: &Mutex<Claims>, key: Key) -> bool {
    let mut claims = claims.lock().unwrap_or_else(PoisonError::into_inner);
    match claims.get_mut(&key) {
        Some(claim @ Claim::Held) => {
            *claim = Claim::Settling;
            true
        }
        _ => false,
    }
}

/// After the commit the claims are gone; after a failure they are as before.
pub(super) fn end_settling(claims: &Mutex<Claims>, keys: &[Key], committed: bool) {
    let mut claims = claims.lock().unwrap_or_else(PoisonError::into_inner);
    for key in keys {
        if committed {
            claims.remove(key);
        } else {
            claims.insert(*key, Claim::Held);
        }
    }
}

pub(super) fn release(claims: &Mutex<Claims>, keys: impl IntoIterator<Item = Key>) {
    let mut claims = claims.lock().unwrap_or_else(PoisonError::into_inner);
    for key in keys {
        if claims.get(&key) == Some(&Claim::Held) {
            claims.remove(&key);
        }
    }
}
