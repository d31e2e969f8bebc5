//! Corrections of the queue: entries whose due time is wrong because the clock was ahead.
//!
//! Times that users chose (`send_at`, `expires_at`, the end of a suppression or of a key) stay. So a message whose
//! `send_at` is in the future again is scheduled again.

use std::time::Duration;

use postroad_model::{MessageId, ServerId, Timestamp};
use serde::Deserialize;

use crate::error::StoreError;
use crate::queue::scheduled;
use crate::queue::waiting::Key;
use crate::sql::Sql;

/// Due time and message: where the next page of the queue begins.
pub(crate) type QueuePosition = (Timestamp, MessageId);

/// A queue entry whose due time is wrong because the clock was ahead.
pub(crate) struct WrongDueTime {
    pub(crate) key: Key,
    /// When it should be due.
    pub(crate) due_at: Timestamp,
    /// Whether the sender chose this time (`send_at`).
    is_scheduled: bool,
}

impl WrongDueTime {
    /// Corrects the entry. It must not be claimed.
    pub(crate) async fn correct_times(&self, sql: &Sql<'_>) -> Result<(), StoreError> {
        if self.is_scheduled {
            return scheduled::put_back(sql, self.key, self.due_at).await;
        }
        let text = "UPDATE queue SET due_at = $3 WHERE server_id = $1 AND message_id = $2";
        sql.execute(text, &[self.key.0.0.into(), self.key.1.0.into(), self.due_at.into()]).await?;
        Ok(())
    }
}

/// The only field of a send's options that this correction reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ScheduledOptions {
    send_at: Option<Timestamp>,
}

/// A page of the queue after `after`: its entries with wrong due times, and where the next page begins.
pub(crate) async fn list_wrong_due_times(
    sql: &Sql<'_>,
    now: Timestamp,
    pause_max: Duration,
    after: Option<QueuePosition>,
    limit: i64,
) -> Result<(Vec<WrongDueTime>, Option<QueuePosition>), StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT q.server_id, q.message_id, q.due_at, m.last_delivery_at, s.options, m.send_at
         FROM queue q CROSS JOIN messages m CROSS JOIN sends s
         WHERE m.server_id = q.server_id AND m.id = q.message_id AND q.scheduled = 0
           AND s.server_id = m.server_id AND s.id = m.send_id
           AND (q.due_at, q.message_id) > ($1, $2) ORDER BY q.due_at, q.message_id LIMIT $3"
    } else {
        "SELECT q.server_id, q.message_id, q.due_at, m.last_delivery_at, s.options, m.send_at
         FROM queue q CROSS JOIN messages m CROSS JOIN sends s
         WHERE m.server_id = q.server_id AND m.id = q.message_id AND q.scheduled = 0
           AND s.server_id = m.server_id AND s.id = m.send_id
           AND (q.due_at, q.message_id) > ($1, $2) AND q.claimed_node IS NULL
         ORDER BY q.due_at, q.message_id LIMIT $3 FOR UPDATE OF q SKIP LOCKED"
    };
    // The first page begins after `now`, each later one where the previous one ended.
    let (from, from_id) =
        after.map_or((now.as_micros(), i64::MAX), |(due_at, id)| (due_at.as_micros(), id.0));
    let rows = sql.query(text, &[from.into(), from_id.into(), limit.into()]).await?;
    let (mut wrong, mut last) = (Vec::new(), None);
    for row in &rows {
        let (key, due_at) = ((ServerId(row.int(0)?), MessageId(row.int(1)?)), row.time(2)?);
        last = Some((due_at, key.1));
        let options: ScheduledOptions = serde_json::from_str(&row.text(4)?).unwrap_or_default();
        if let Some(due_at) = row.time_opt(5)?.or(options.send_at).filter(|send_at| *send_at > now) {
            wrong.push(WrongDueTime { key, due_at, is_scheduled: true });
            continue;
        }
        let corrected = corrected_due_time(due_at, row.time_opt(3)?, now, pause_max);
        wrong.extend(corrected.map(|due_at| WrongDueTime { key, due_at, is_scheduled: false }));
    }
    Ok((wrong, last.filter(|_| rows.len() as i64 == limit)))
}

/// The corrected due time of a message that is due in the future; `None` if its due time is right.
fn corrected_due_time(
    due_at: Timestamp,
    last_delivery_at: Option<Timestamp>,
    now: Timestamp,
    pause_max: Duration,
) -> Option<Timestamp> {
    match last_delivery_at {
        // The message was never attempted, so it has been due since its acceptance.
        None => Some(now),
        // The message's last attempt lies in the future: the pause after it begins now.
        Some(at) if at > now => Some(now.plus(due_at.since(at).min(pause_max))).filter(|new| *new < due_at),
        Some(at) => (due_at.since(at) > pause_max).then_some(now),
    }
}

/// Corrects a page of the queue on PostgreSQL, where rows contain their claims. Returns the number of corrected
/// entries, and where the next page begins.
pub(crate) async fn correct_page(
    sql: &Sql<'_>,
    now: Timestamp,
    pause_max: Duration,
    after: Option<QueuePosition>,
    limit: i64,
) -> Result<(usize, Option<QueuePosition>), StoreError> {
    let (wrong, next) = list_wrong_due_times(sql, now, pause_max, after, limit).await?;
    for entry in &wrong {
        entry.correct_times(sql).await?;
    }
    Ok((wrong.len(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_due_times_that_a_right_clock_cannot_give_are_corrected() {
        let at = |minutes: i64| Timestamp::from_micros(minutes * 60_000_000);
        let now = at(1_000);
        let pause_max = Duration::from_hours(1);
        let corrected = |due_at, last| corrected_due_time(due_at, last, now, pause_max);
        assert_eq!(corrected(at(2_440), None), Some(now), "accepted a day ahead");
        assert_eq!(corrected(at(2_445), Some(at(2_440))), Some(at(1_005)), "failed a day ahead");
        assert_eq!(corrected(at(1_005), Some(at(999))), None, "as it should be");
        assert_eq!(corrected(at(2_440), Some(at(900))), Some(now), "made due a day ahead");
    }
}
