//! Pacing notes: limits and greylisting that delivery observed at receivers. Shared between nodes and kept over
//! restarts.

use std::net::IpAddr;

use postroad_boxed_futures::boxed_futures;
use postroad_model::Timestamp;

use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

/// One receiver (a site or a whole provider) as seen from one source address. `None` means unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacingNote {
    /// The unspecified address (`0.0.0.0` or `::`) if the operating system chooses the source address.
    pub source: IpAddr,
    /// Name of the site in delivery's routes, or `provider:` and the name of the provider.
    pub site: String,
    /// Messages per minute that the receiver seems to accept.
    pub per_minute: Option<u32>,
    /// Concurrent connections that the receiver seems to accept.
    pub connections: Option<u32>,
    /// Duration of the receiver's greylisting, in seconds.
    pub greylist_secs: Option<u32>,
    /// The codes of the reply that led to this note, without its text, which may quote a message. Earlier releases
    /// stored the whole reply.
    pub reason: String,
    pub learned_at: Timestamp,
}

#[boxed_futures]
impl Store {
    /// Saves notes about receivers. A note replaces the stored note of the same source and site, unless the stored note
    /// is newer.
    pub async fn save_pacing_notes(&self, notes: Vec<PacingNote>) -> Result<()> {
        self.write(move |sql| Box::pin(async move { save(sql, &notes).await })).await
    }

    /// Notes made at `since` or later, by this or other nodes, newest first.
    pub async fn list_pacing_notes(&self, since: Timestamp, limit: usize) -> Result<Vec<PacingNote>> {
        self.fetch_all(
            "SELECT source, site, per_minute, connections, greylist_secs, reason, learned_at FROM pacing_notes
             WHERE learned_at >= $1 ORDER BY learned_at DESC LIMIT $2",
            vec![since.into(), (limit as i64).into()],
            read,
        )
        .await
    }

    /// Removes notes made before this time; returns how many.
    pub async fn purge_pacing_notes(&self, before: Timestamp) -> Result<u64> {
        self.execute("DELETE FROM pacing_notes WHERE learned_at < $1", vec![before.into()]).await
    }
}

/// Saves notes, unless a newer note of the same source and site is stored.
pub(crate) async fn save(sql: &Sql<'_>, notes: &[PacingNote]) -> Result<(), StoreError> {
    for note in notes {
        sql.execute(
            "INSERT INTO pacing_notes (source, site, per_minute, connections, greylist_secs, reason, learned_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (source, site) DO UPDATE
                 SET per_minute = excluded.per_minute, connections = excluded.connections,
                     greylist_secs = excluded.greylist_secs, reason = excluded.reason,
                     learned_at = excluded.learned_at
                 WHERE pacing_notes.learned_at <= excluded.learned_at",
            &[
                note.source.to_string().into(),
                note.site.as_str().into(),
                note.per_minute.map(i64::from).into(),
                note.connections.map(i64::from).into(),
                note.greylist_secs.map(i64::from).into(),
                note.reason.as_str().into(),
                note.learned_at.into(),
            ],
        )
        .await?;
    }
    Ok(())
}

fn read(row: &Row) -> Result<PacingNote, StoreError> {
    let source = row.text(0)?;
    let address: Option<IpAddr> = source.parse().ok();
    let number = |at: usize| row.int_opt(at).map(|value| value.and_then(|value| u32::try_from(value).ok()));
    Ok(PacingNote {
        source: address.ok_or_else(|| {
            StoreError::Internal(format!("a pacing note has the unreadable source address {source:?}"))
        })?,
        site: row.text(1)?,
        per_minute: number(2)?,
        connections: number(3)?,
        greylist_secs: number(4)?,
        reason: row.text(5)?,
        learned_at: row.time(6)?,
    })
}
