//! Retention periods, and the task that deletes older data: a few rows at a time with pauses, so that sending
//! is not affected. Data that is still to be delivered, counted or posted to a webhook is never deleted.
//!
//! A failed step is repeated in the next run. The other steps still run. But messages and sends stay if some of their
//! other data could not be deleted, because that data is found through them.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, Timestamp, idgen};
use postroad_store::{Grain, OldRows, Removal, RemovalProgress, Server, ServerRetention, StoreError};

use crate::App;
use crate::failed_steps::{FailedSteps, Round};

/// Pause between two steps: other work comes first.
const STEP_PAUSE: Duration = Duration::from_millis(20);
/// The ids of a send and of its messages are created within this time.
const SEND_SPREAD: Duration = Duration::from_hours(1);

/// Jobs can be looked up for this long after their end.
const JOB_RETENTION: Duration = days(30);
/// Revoked credentials are listed for this long; the audit log keeps their revocation.
const REVOKED_CREDENTIAL_RETENTION: Duration = days(90);

const fn days(days: u64) -> Duration {
    Duration::from_hours(24 * days)
}

/// Retention periods; `None` keeps data forever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Message bodies.
    pub bodies: Option<Duration>,
    /// Messages with all their data.
    pub messages: Option<Duration>,
    pub events: Option<Duration>,
    /// Delivery attempts and their transcripts.
    pub attempts: Option<Duration>,
    pub webhook_attempts: Option<Duration>,
    pub counters: Option<Duration>,
    pub minute_counters: Option<Duration>,
    /// Time between two runs. Messages, their bodies, events and attempts younger than this are never deleted.
    pub check_every: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            bodies: Some(days(30)),
            messages: Some(days(90)),
            events: Some(days(90)),
            attempts: Some(days(90)),
            webhook_attempts: Some(days(30)),
            counters: Some(days(800)),
            minute_counters: Some(days(7)),
            check_every: Duration::from_mins(10),
        }
    }
}

impl Retention {
    /// Lowest id to keep; 0 to keep all. Messages being accepted took their ids moments ago and are not visible
    /// yet, so data younger than `check_every` stays even if the retention is zero.
    fn first_id_kept(&self, now: Timestamp, period: Option<Duration>) -> i64 {
        period.map_or(0, |period| idgen::first_id_at(now.minus(period.max(self.check_every))))
    }
}

/// Handle of the running task.
#[derive(Debug)]
pub struct RetentionTask {
    task: tokio::task::JoinHandle<()>,
}

impl RetentionTask {
    pub fn start(app: App) -> Self {
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(app.inner.retention.check_every).await;
                if let Err(error) = app.remove_expired_data().await {
                    tracing::warn!(%error, "some steps of the retention sweep failed; retrying at the next sweep");
                }
            }
        });
        Self { task }
    }

    pub fn stop(self) {
        self.task.abort();
    }
}

#[boxed_futures]
impl App {
    /// Deletes all data beyond its retention period. Runs all steps, even if some fail.
    pub async fn remove_expired_data(&self) -> Result<(), FailedSteps> {
        let now = self.inner.clock.now();
        let mut round = Round::default();
        let of_servers = self.remove_old_of_servers(now).await;
        let mut removed = round.record("data by servers' settings", of_servers).unwrap_or_default();
        self.remove_old_mail(now, &mut round, &mut removed).await;
        let store = &self.inner.store;
        let (ended_before, revoked_before) =
            (now.minus(JOB_RETENTION), now.minus(REVOKED_CREDENTIAL_RETENTION));
        for (name, rows) in [
            ("search index", remove_in_steps(|| store.remove_old_search_rows()).await),
            ("jobs", remove_in_steps(|| store.remove_old_jobs(ended_before)).await),
            (
                "revoked credentials",
                remove_in_steps(|| store.remove_revoked_credentials(revoked_before)).await,
            ),
            ("request inspectors", remove_in_steps(|| store.remove_expired_inspectors()).await),
            ("domain reports", remove_in_steps(|| store.remove_old_domain_reports()).await),
            ("counters", self.remove_old_counters(now).await),
        ] {
            removed.extend(round.record(name, rows).map(|rows| (name, rows)));
        }
        let counts: Vec<String> = removed
            .iter()
            .filter(|(_, rows)| *rows > 0)
            .map(|(name, rows)| format!("{name}: {rows}"))
            .collect();
        if !counts.is_empty() {
            tracing::info!(removed = counts.join(", "), "retention sweep removed expired data");
        }
        round.end()
    }

    /// Deletes old messages with their data, old events, and old attempts of webhooks.
    async fn remove_old_mail(
        &self,
        now: Timestamp,
        round: &mut Round,
        removed: &mut Vec<(&'static str, u64)>,
    ) {
        let retention = &self.inner.retention;
        let first_message = retention.first_id_kept(now, retention.messages);
        let of_messages = |period| retention.first_id_kept(now, period).max(first_message);
        let mut has_failed = false;
        // Messages are deleted after their events: messages that still have events stay.
        for (which, name, before) in [
            (OldRows::Bodies, "bodies", of_messages(retention.bodies)),
            (OldRows::Transcripts, "transcripts", of_messages(retention.attempts)),
            (OldRows::Deliveries, "deliveries", of_messages(retention.attempts)),
            (OldRows::Events, "events", retention.first_id_kept(now, retention.events)),
            (OldRows::EventsOfMessages, "events of messages", first_message),
            (OldRows::Messages, "messages", first_message),
            (OldRows::Sends, "sends", retention.first_id_kept(now.minus(SEND_SPREAD), retention.messages)),
            (
                OldRows::WebhookAttempts,
                "webhook attempts",
                retention.first_id_kept(now, retention.webhook_attempts),
            ),
        ] {
            // Other data is found through its message and send, so both stay if deleting some of that data failed.
            let is_needed = has_failed && matches!(which, OldRows::Messages | OldRows::Sends);
            if before > 0 && !is_needed {
                let rows = round.record(name, self.remove_before(which, before).await);
                has_failed |= rows.is_none();
                removed.extend(rows.map(|rows| (name, rows)));
            }
        }
    }

    async fn remove_before(&self, which: OldRows, before_id: i64) -> Result<u64, StoreError> {
        let mut removal = self.inner.store.begin_removal(which, before_id).await?;
        self.remove_rows(&mut removal).await
    }

    /// Deletes data of servers with a shorter retention than the installation.
    async fn remove_old_of_servers(&self, now: Timestamp) -> Result<Vec<(&'static str, u64)>, StoreError> {
        let store = &self.inner.store;
        let servers: Vec<Server> = store.list_servers().await?;
        let installation = &self.inner.retention;
        let own_retention = |server: &Server| OwnRetention::of(server, installation);
        let own: Vec<OwnRetention> = servers.iter().map(own_retention).collect();
        let mut removed = Vec::new();
        // The removal of bodies, which comes first. Later removals keep the sends whose bodies it kept.
        let mut bodies = None;
        for (which, name) in [
            (OldRows::Bodies, "bodies by servers' settings"),
            (OldRows::Transcripts, "transcripts by servers' settings"),
            (OldRows::Deliveries, "deliveries by servers' settings"),
            (OldRows::EventsOfMessages, "events by servers' settings"),
            (OldRows::Messages, "messages by servers' settings"),
            (OldRows::Sends, "sends by servers' settings"),
        ] {
            let first = |own: &OwnRetention| {
                Some((own.server_id, installation.first_id_kept(now, Some(own.retention_of(which)?))))
            };
            let firsts: Vec<(ServerId, i64)> = own.iter().filter_map(first).collect();
            if !firsts.is_empty() {
                let mut removal = store.begin_removal_of_servers(which, firsts, bodies.as_ref()).await?;
                removed.push((name, self.remove_rows(&mut removal).await?));
                bodies.get_or_insert(removal);
            }
        }
        Ok(removed)
    }

    async fn remove_rows(&self, removal: &mut Removal) -> Result<u64, StoreError> {
        let (store, mut rows) = (&self.inner.store, 0);
        loop {
            let removed = store.remove_old_rows(removal).await?;
            rows += removed.rows;
            if !removed.has_more {
                return Ok(rows);
            }
            // A step that only scanned rows was work as well, so pause after every step.
            tokio::time::sleep(STEP_PAUSE).await;
        }
    }

    async fn remove_old_counters(&self, now: Timestamp) -> Result<u64, StoreError> {
        let (retention, store) = (&self.inner.retention, &self.inner.store);
        // Whole days: the store knows only the last day on which a set of dimensions was counted.
        let before = |period: Option<Duration>| period.map(|period| Grain::Day.start(now.minus(period)));
        let mut rows = 0;
        if let Some(before) = before(retention.minute_counters) {
            rows += remove_in_steps(|| store.remove_old_counters(Grain::Minute, before)).await?;
        }
        if let Some(before) = before(retention.counters) {
            for grain in [Grain::Quarter, Grain::Hour, Grain::Day] {
                rows += remove_in_steps(|| store.remove_old_counters(grain, before)).await?;
            }
            rows += remove_in_steps(|| store.remove_old_day_counts(before)).await?;
        }
        Ok(rows)
    }
}

/// Retention periods of a server; `None` for a period that is not shorter than the installation's.
struct OwnRetention {
    server_id: ServerId,
    bodies: Option<Duration>,
    messages: Option<Duration>,
}

impl OwnRetention {
    fn of(server: &Server, installation: &Retention) -> Self {
        let shorter = |own: Option<u32>, installation: Option<Duration>| {
            let own = days(own?.into());
            installation.is_none_or(|installation| own < installation).then_some(own)
        };
        let ServerRetention { bodies_days, messages_days } = server.retention;
        Self {
            server_id: server.id,
            bodies: shorter(bodies_days, installation.bodies),
            messages: shorter(messages_days, installation.messages),
        }
    }

    fn retention_of(&self, which: OldRows) -> Option<Duration> {
        match which {
            // A body never outlives its message, so the shorter period applies.
            OldRows::Bodies => self.bodies.into_iter().chain(self.messages).min(),
            OldRows::Sends => self.messages.map(|period| period + SEND_SPREAD),
            _ => self.messages,
        }
    }
}

/// Repeats `step`, with pauses, until it leaves no rows. Returns the number of removed rows.
async fn remove_in_steps<F>(mut step: impl FnMut() -> F) -> Result<u64, StoreError>
where
    F: Future<Output = Result<RemovalProgress, StoreError>>,
{
    let mut rows = 0;
    loop {
        let removed = step().await?;
        rows += removed.rows;
        if !removed.has_more {
            return Ok(rows);
        }
        tokio::time::sleep(STEP_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_being_accepted_is_never_too_old() {
        let retention = Retention::default();
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        let first = retention.first_id_kept(now, Some(Duration::ZERO));
        assert_eq!(first, idgen::first_id_at(now.minus(Duration::from_mins(10))));
        assert_eq!(retention.first_id_kept(now, Some(days(1))), idgen::first_id_at(now.minus(days(1))));
        assert_eq!(retention.first_id_kept(now, None), 0);
    }
}
