//! How long what is kept, and the task that removes the rest: a few rows at a time with pauses, so that sending does not
//! notice. What is still to be delivered, counted or told to a webhook is never too old.
//!
//! On failure (store unavailable) the rest waits for the next turn.

use std::time::Duration;

use postroad_model::{Timestamp, idgen};
use postroad_store::{Grain, OldRows, Removed, StoreError};

use crate::App;

/// Between two steps: everybody else's work comes first.
const STEP_PAUSE: Duration = Duration::from_millis(20);
/// The ids of a send and of its messages are made within this.
const SEND_SPREAD: Duration = Duration::from_hours(1);

const fn days(days: u64) -> Duration {
    Duration::from_hours(24 * days)
}

/// `None` is for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// The text of messages.
    pub bodies: Option<Duration>,
    /// Messages with everything about them.
    pub messages: Option<Duration>,
    pub events: Option<Duration>,
    /// Delivery attempts and their transcripts.
    pub attempts: Option<Duration>,
    pub webhook_attempts: Option<Duration>,
    pub counters: Option<Duration>,
    pub minute_counters: Option<Duration>,
    /// How often is looked.
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

/// The running task.
#[derive(Debug)]
pub struct Remover {
    task: tokio::task::JoinHandle<()>,
}

impl Remover {
    pub fn start(app: App) -> Self {
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(app.inner.retention.check_every).await;
                if let Err(error) = app.remove_old().await {
                    tracing::warn!(%error, "removing what is old is put off");
                }
            }
        });
        Self { task }
    }

    pub fn stop(self) {
        self.task.abort();
    }
}

impl App {
    /// Removes everything that is kept no longer.
    pub async fn remove_old(&self) -> Result<(), StoreError> {
        let now = self.inner.clock.now();
        let kept = &self.inner.retention;
        let messages = first_kept(now, kept.messages);
        let of_messages = |kept| first_kept(now, kept).max(messages);
        let mut removed = Vec::new();
        // Messages go after their events: those that have any stay.
        for (which, name, before) in [
            (OldRows::Bodies, "bodies", of_messages(kept.bodies)),
            (OldRows::Transcripts, "transcripts", of_messages(kept.attempts)),
            (OldRows::Deliveries, "deliveries", of_messages(kept.attempts)),
            (OldRows::Events, "events", first_kept(now, kept.events)),
            (OldRows::EventsOfMessages, "events of messages", messages),
            (OldRows::Messages, "messages", messages),
            (OldRows::Sends, "sends", first_kept(now.minus(SEND_SPREAD), kept.messages)),
            (OldRows::WebhookAttempts, "webhook attempts", first_kept(now, kept.webhook_attempts)),
        ] {
            if before > 0 {
                removed.push((name, self.remove_rows(which, before).await?));
            }
        }
        removed.push(("counters", self.remove_old_counters(now).await?));
        let told: Vec<String> = removed
            .iter()
            .filter(|(_, rows)| *rows > 0)
            .map(|(name, rows)| format!("{name}: {rows}"))
            .collect();
        if !told.is_empty() {
            tracing::info!(removed = told.join(", "), "removed what is kept no longer");
        }
        Ok(())
    }

    async fn remove_rows(&self, which: OldRows, before: i64) -> Result<u64, StoreError> {
        let store = &self.inner.store;
        let (mut rows, mut removal) = (0, store.begin_removal(which, before).await?);
        loop {
            let removed = store.remove_old_rows(&mut removal).await?;
            rows += removed.rows;
            if !removed.has_more {
                return Ok(rows);
            }
            if removed.rows > 0 {
                tokio::time::sleep(STEP_PAUSE).await;
            }
        }
    }

    async fn remove_old_counters(&self, now: Timestamp) -> Result<u64, StoreError> {
        let (kept, store) = (&self.inner.retention, &self.inner.store);
        // Whole days: a set of dimensions goes with its last one.
        let before = |kept: Option<Duration>| kept.map(|kept| Grain::Day.start(now.minus(kept)));
        let mut rows = 0;
        if let Some(before) = before(kept.minute_counters) {
            rows += in_steps(|| store.remove_old_counters(Grain::Minute, before)).await?;
        }
        if let Some(before) = before(kept.counters) {
            for grain in [Grain::Quarter, Grain::Hour, Grain::Day] {
                rows += in_steps(|| store.remove_old_counters(grain, before)).await?;
            }
            rows += in_steps(|| store.remove_old_days(before)).await?;
        }
        Ok(rows)
    }
}

/// The lowest id that is young enough; 0 for ever.
fn first_kept(now: Timestamp, kept: Option<Duration>) -> i64 {
    kept.map_or(0, |kept| idgen::first_id_at(now.minus(kept)))
}

async fn in_steps<F>(mut step: impl FnMut() -> F) -> Result<u64, StoreError>
where
    F: Future<Output = Result<Removed, StoreError>>,
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
