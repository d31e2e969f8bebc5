//! Limits of every removal: the oldest rows of each server that are still needed.

use postroad_model::ServerId;

use super::old_rows::{OldRows, RemovalBound};
use crate::error::StoreError;
use crate::sql::{Row, Sql};

/// Number of ids in one hour: 2²¹ for each second (`postroad_model::idgen`). The ids of a send and its messages differ
/// by less, and so do the ids of events that are counted together: removals keep this distance.
pub(crate) const IDS_PER_HOUR: i64 = 3_600 << 21;

/// The lowest ids of a server that are still needed.
struct OldestNeeded {
    server_id: ServerId,
    /// Oldest message that is queued, scheduled or held.
    live_message: Option<i64>,
    unposted_event: Option<i64>,
    uncounted_event: Option<i64>,
    /// Oldest message that still has events, for any reason.
    message_with_events: Option<i64>,
}

/// For each server, the first row that stays.
pub(crate) async fn list_bounds(
    sql: &Sql<'_>,
    which: OldRows,
    before_id: i64,
) -> Result<Vec<RemovalBound>, StoreError> {
    let oldest = list(sql).await?;
    let bounds = oldest.iter().map(|oldest| RemovalBound {
        server_id: oldest.server_id,
        before_id: before_id.min(oldest.bound_of(which)),
    });
    Ok(bounds.collect())
}

impl OldestNeeded {
    fn bound_of(&self, which: OldRows) -> i64 {
        let or_max = |id: Option<i64>| id.unwrap_or(i64::MAX);
        // Keep everything of an unfinished message, and its send.
        let live = or_max(self.live_message).saturating_sub(IDS_PER_HOUR);
        match which {
            OldRows::Bodies | OldRows::Transcripts | OldRows::Deliveries => live,
            OldRows::Events => {
                or_max(self.unposted_event).min(or_max(self.uncounted_event).saturating_sub(IDS_PER_HOUR))
            }
            // A message before this bound may still have unposted events: the SQL of `rows.rs` checks each event.
            OldRows::EventsOfMessages => live.min(or_max(self.unposted_event)),
            OldRows::Messages => live.min(or_max(self.message_with_events)),
            OldRows::Sends => live.min(or_max(self.message_with_events).saturating_sub(IDS_PER_HOUR)),
            OldRows::WebhookAttempts => i64::MAX,
        }
    }
}

/// Reads the oldest needed ids of each server, with a few index look-ups each. An outbox row keeps nothing if its event
/// no longer exists.
async fn list(sql: &Sql<'_>) -> Result<Vec<OldestNeeded>, StoreError> {
    macro_rules! text {
        ($uncounted:literal) => {
            concat!(
                "SELECT s.id,
                     (SELECT MIN(q.message_id) FROM queue q WHERE q.server_id = s.id),
                     held.id,
                     (SELECT MIN((SELECT q.event_id FROM webhook_queue q
                                  WHERE q.server_id = w.server_id AND q.webhook_id = w.id
                                  AND EXISTS (SELECT 1 FROM events e WHERE e.server_id = q.server_id AND e.id = q.event_id)
                                  ORDER BY q.event_id LIMIT 1))
                      FROM webhooks w WHERE w.server_id = s.id AND w.enabled = 1),
                     (SELECT e.id FROM events e WHERE e.server_id = s.id AND ",
                $uncounted,
                " LIMIT 1),
                     (SELECT e.message_id FROM events e WHERE e.server_id = s.id AND e.message_id > 0
                      ORDER BY e.message_id LIMIT 1)
                 FROM servers s LEFT JOIN counter_marks c ON c.server_id = s.id
                 LEFT JOIN (SELECT server_id, MIN(id) AS id FROM messages WHERE hold_expiry IS NOT NULL
                            GROUP BY server_id) held ON held.server_id = s.id"
            )
        };
    }
    let text = if sql.is_sqlite() {
        text!("e.id > COALESCE(c.event_id, 0) ORDER BY e.id")
    } else {
        text!("(e.xact, e.id) > (COALESCE(c.xact, 0), COALESCE(c.event_id, 0)) ORDER BY e.xact, e.id")
    };
    let rows = sql.query(text, &[]).await?;
    let read = |row: &Row| {
        Ok(OldestNeeded {
            server_id: ServerId(row.int(0)?),
            live_message: [row.int_opt(1)?, row.int_opt(2)?].into_iter().flatten().min(),
            unposted_event: row.int_opt(3)?,
            uncounted_event: row.int_opt(4)?,
            message_with_events: row.int_opt(5)?,
        })
    };
    rows.iter().map(read).collect()
}
