//! Weekly partitions of the large tables, created two weeks ahead; if that failed, when the first rows of a week are
//! written. Ids are time-ordered, so a week is a range of ids.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Pool};
use parking_lot::Mutex;

use super::bounded;
use crate::error::StoreError;
use crate::retention::OldRows;
use crate::retention::old_rows::Cut;
use crate::retention::removal::DroppedWeeks;

/// Number of ids in a week.
pub(super) const WEEK_IDS: i64 = (7 * 24 * 3_600) << 21;

const TABLES: [&str; 7] =
    ["sends", "bodies", "messages", "deliveries", "delivery_transcripts", "events", "webhook_attempts"];

/// Number of weeks created ahead, so that a failure to create one does not stop mail at once.
const AHEAD: i64 = 2;
/// Pause after a failure to create weeks ahead.
const AHEAD_PAUSE: Duration = Duration::from_mins(10);

/// Key of the advisory lock: an arbitrary number that nothing else uses.
const LOCK: i64 = 0x7061_7274_6974_696f;

#[derive(Debug, Default)]
pub(super) struct Partitions {
    /// Weeks whose partitions are known to exist, counted from the ids' epoch.
    made: Mutex<HashSet<i64>>,
    /// Week whose following weeks could not be created, and when their creation is tried again.
    failed_ahead: Mutex<Option<(i64, Instant)>>,
}

impl Partitions {
    /// Creates partitions for ids from `oldest` to `newest`.
    pub(super) async fn ensure(&self, pool: &Pool, oldest: i64, newest: i64) -> Result<(), StoreError> {
        for week in oldest / WEEK_IDS..=newest / WEEK_IDS {
            let is_made = self.made.lock().contains(&week);
            if !is_made {
                bounded(make(pool, week)).await?;
                self.made.lock().insert(week);
                self.make_ahead(pool, week).await;
            }
        }
        let failed = self.failed_ahead.lock().take_if(|(_, again_at)| *again_at <= Instant::now());
        if let Some((week, _)) = failed {
            self.make_ahead(pool, week).await;
        }
        Ok(())
    }

    /// Creates the weeks after `week`. A failure is not urgent: these weeks are not needed before `week` ends.
    async fn make_ahead(&self, pool: &Pool, week: i64) {
        if let Err(error) = make_ahead(pool, week).await {
            tracing::warn!(%error, week, "creating partitions ahead failed; retrying in 10 min");
            *self.failed_ahead.lock() = Some((week, Instant::now() + AHEAD_PAUSE));
        }
    }
}

async fn make_ahead(pool: &Pool, week: i64) -> Result<(), StoreError> {
    for next in week + 1..=week + AHEAD {
        bounded(make(pool, next)).await?;
    }
    Ok(())
}

/// Creates the partitions of a week, each as a separate table that is then attached. Unlike `CREATE TABLE … PARTITION
/// OF`, attaching does not wait for users of the table (a dump may take hours) and does not block others.
async fn make(pool: &Pool, week: i64) -> Result<(), StoreError> {
    let (from, to) = (week * WEEK_IDS, (week + 1) * WEEK_IDS);
    let mut client = pool.get().await?;
    let transaction = client.transaction().await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    for table in TABLES {
        let name = format!("{table}_w{week}");
        let exists: bool =
            transaction.query_one("SELECT to_regclass($1) IS NOT NULL", &[&name]).await?.get(0);
        if !exists {
            let text = format!(
                "CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES
                                      INCLUDING STORAGE);
                 ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({to})"
            );
            transaction.batch_execute(&text).await?;
        }
    }
    transaction.commit().await?;
    Ok(())
}

/// Creates the partition for deliveries of an old message again if it was dropped before the message was removed. Asks
/// the database, because another node may have dropped it.
pub(super) async fn ensure_deliveries(pool: &Pool, message_id: i64) -> Result<(), StoreError> {
    let week = message_id / WEEK_IDS;
    let name = format!("deliveries_w{week}");
    let is_there = bounded(async { exists(&pool.get().await?, &name).await }).await?;
    if is_there { Ok(()) } else { bounded(make(pool, week)).await }
}

async fn exists(client: &Object, name: &str) -> Result<bool, StoreError> {
    Ok(client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&name]).await?.get(0))
}

fn table_of(which: OldRows) -> &'static str {
    match which {
        OldRows::Bodies => "bodies",
        OldRows::Transcripts => "delivery_transcripts",
        OldRows::Deliveries => "deliveries",
        OldRows::Events | OldRows::EventsOfMessages => "events",
        OldRows::Messages => "messages",
        OldRows::Sends => "sends",
        OldRows::WebhookAttempts => "webhook_attempts",
    }
}

/// Drops weeks whose ids are all below `before`, except weeks with rows that a server needs. Waits for users of the
/// table only briefly; the next call tries again.
pub(super) async fn drop_before(
    pool: &Pool,
    which: OldRows,
    before: i64,
    cuts: &[Cut],
) -> Result<DroppedWeeks, StoreError> {
    let table = table_of(which);
    let mut client = pool.get().await?;
    let rows = client
        .query(
            "SELECT week.relname::text FROM pg_inherits i JOIN pg_class week ON week.oid = i.inhrelid
             WHERE i.inhparent = to_regclass($1) ORDER BY week.relname",
            &[&table],
        )
        .await?;
    let mut weeks = DroppedWeeks::default();
    for row in rows {
        let name: String = row.get(0);
        let week = name.strip_prefix(table).and_then(|rest| rest.strip_prefix("_w")?.parse::<i64>().ok());
        let Some(week) = week.filter(|week| (week + 1) * WEEK_IDS <= before) else { continue };
        if bounded(is_needed(&client, which, week, cuts)).await? {
            weeks.kept_before = weeks.kept_before.max(Some((week + 1) * WEEK_IDS));
            continue;
        }
        let transaction = client.transaction().await?;
        let text = format!(
            "SET LOCAL lock_timeout = '200ms'; SELECT pg_advisory_xact_lock({LOCK}); DROP TABLE IF EXISTS {name}"
        );
        bounded(async { Ok(transaction.batch_execute(&text).await?) }).await?;
        transaction.commit().await?;
        weeks.dropped += 1;
    }
    Ok(weeks)
}

/// Whether a server that needs data from before the end of the week has rows in this week.
async fn is_needed(client: &Object, which: OldRows, week: i64, cuts: &[Cut]) -> Result<bool, StoreError> {
    let end = (week + 1) * WEEK_IDS;
    let servers: Vec<i64> =
        cuts.iter().filter(|cut| cut.before_id < end).map(|cut| cut.server_id.0).collect();
    // Looks for messages instead of delivery records: a message that is not delivered yet may have none.
    let table = match which {
        OldRows::Transcripts | OldRows::Deliveries => "messages",
        other => table_of(other),
    };
    let name = format!("{table}_w{week}");
    if servers.is_empty() || !exists(client, &name).await? {
        return Ok(false);
    }
    let text = format!("SELECT EXISTS (SELECT 1 FROM {name} WHERE server_id = ANY($1))");
    Ok(client.query_one(&text, &[&servers]).await?.get(0))
}
