//! Weekly partitions of the large tables, created two weeks ahead; if that failed, when the first rows of a week are
//! written. Ids are time-ordered, so a week is a range of ids.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Pool};
use parking_lot::Mutex;

use super::with_timeout;
use crate::error::StoreError;
use crate::retention::OldRows;
use crate::retention::old_rows::RemovalBound;
use crate::retention::removal::DroppedWeeks;

/// Number of ids in a week: 2²¹ for each second (`postroad_model::idgen`).
pub(super) const IDS_PER_WEEK: i64 = (7 * 24 * 3_600) << 21;

const TABLES: [&str; 7] =
    ["sends", "bodies", "messages", "deliveries", "delivery_transcripts", "events", "webhook_attempts"];

/// Number of weeks created ahead, so that a failure to create one does not stop mail at once.
const WEEKS_AHEAD: i64 = 2;
/// Pause before weeks ahead are created again after a failure.
const AHEAD_RETRY_PAUSE: Duration = Duration::from_mins(10);

/// Key of the advisory lock: an arbitrary number that nothing else uses.
const LOCK_KEY: i64 = 0x7061_7274_6974_696f;

#[derive(Debug, Default)]
pub(super) struct Partitions {
    /// Weeks whose partitions are known to exist, counted from the ids' epoch.
    existing_weeks: Mutex<HashSet<i64>>,
    /// Week whose following weeks could not be created, and when their creation is tried again.
    failed_ahead: Mutex<Option<(i64, Instant)>>,
}

impl Partitions {
    /// Creates partitions for ids from `oldest` to `newest`.
    pub(super) async fn ensure(&self, pool: &Pool, oldest: i64, newest: i64) -> Result<(), StoreError> {
        for week in oldest / IDS_PER_WEEK..=newest / IDS_PER_WEEK {
            let exists = self.existing_weeks.lock().contains(&week);
            if !exists {
                with_timeout(create_week(pool, week)).await?;
                self.existing_weeks.lock().insert(week);
                self.try_create_weeks_ahead(pool, week).await;
            }
        }
        let failed = self.failed_ahead.lock().take_if(|(_, retry_at)| *retry_at <= Instant::now());
        if let Some((week, _)) = failed {
            self.try_create_weeks_ahead(pool, week).await;
        }
        Ok(())
    }

    /// Creates the weeks after `week`. A failure is not urgent: these weeks are not needed before `week` ends.
    async fn try_create_weeks_ahead(&self, pool: &Pool, week: i64) {
        if let Err(error) = create_weeks_ahead(pool, week).await {
            tracing::warn!(%error, week, "creating partitions ahead failed; retrying in 10 min");
            *self.failed_ahead.lock() = Some((week, Instant::now() + AHEAD_RETRY_PAUSE));
        }
    }
}

async fn create_weeks_ahead(pool: &Pool, week: i64) -> Result<(), StoreError> {
    for next in week + 1..=week + WEEKS_AHEAD {
        with_timeout(create_week(pool, next)).await?;
    }
    Ok(())
}

/// Creates the partitions of a week, each as a separate table that is then attached. Unlike `CREATE TABLE … PARTITION
/// OF`, attaching does not wait for users of the table (a dump may take hours) and does not block others.
async fn create_week(pool: &Pool, week: i64) -> Result<(), StoreError> {
    let (from, to) = (week * IDS_PER_WEEK, (week + 1) * IDS_PER_WEEK);
    let mut client = pool.get().await?;
    let transaction = client.transaction().await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK_KEY})")).await?;
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
    let week = message_id / IDS_PER_WEEK;
    let name = format!("deliveries_w{week}");
    let is_there = with_timeout(async { exists(&pool.get().await?, &name).await }).await?;
    if is_there { Ok(()) } else { with_timeout(create_week(pool, week)).await }
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
pub(super) async fn drop_weeks_before(
    pool: &Pool,
    which: OldRows,
    before: i64,
    bounds: &[RemovalBound],
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
        let Some(week) = week.filter(|week| (week + 1) * IDS_PER_WEEK <= before) else { continue };
        if with_timeout(is_needed(&client, which, week, bounds)).await? {
            weeks.needed_until = weeks.needed_until.max(Some((week + 1) * IDS_PER_WEEK));
            continue;
        }
        let transaction = client.transaction().await?;
        let text = format!(
            "SET LOCAL lock_timeout = '200ms'; SELECT pg_advisory_xact_lock({LOCK_KEY}); DROP TABLE IF EXISTS {name}"
        );
        with_timeout(async { Ok(transaction.batch_execute(&text).await?) }).await?;
        transaction.commit().await?;
        weeks.dropped += 1;
    }
    Ok(weeks)
}

/// Whether a server that needs data from before the end of the week has rows in this week.
async fn is_needed(
    client: &Object,
    which: OldRows,
    week: i64,
    bounds: &[RemovalBound],
) -> Result<bool, StoreError> {
    let end = (week + 1) * IDS_PER_WEEK;
    let servers: Vec<i64> =
        bounds.iter().filter(|bound| bound.before_id < end).map(|bound| bound.server_id.0).collect();
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
