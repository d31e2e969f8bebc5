//! Corrections after the clock was ahead and was set back, so that nothing waits for the wrong time.

mod outbox;
pub(crate) mod queue;
mod tables;

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::idgen::second_of_id;

use crate::{Engine, Result, Store};
use queue::QueuePosition;

/// Maximum number of queue entries, holds or idempotency keys that one transaction examines or changes.
const ROWS_PER_TRANSACTION: i64 = 500;
/// Outbox rows that are checked together, and corrected in one transaction. Usually none of them needs a correction.
const OUTBOX_PAGE_ROWS: i64 = 5_000;
/// How far the newest id may be ahead of a correct clock: ids of a busy second run ahead, and clocks of nodes differ.
const ID_LEAD_MAX: Duration = Duration::from_mins(1);

#[boxed_futures]
impl Store {
    /// Whether the clock is behind an earlier reading: the time in the newest id, which survives restarts, is more than
    /// a minute ahead of the clock. `false` if this process has no ids.
    pub fn is_clock_behind(&self) -> bool {
        self.ids().is_ok_and(|ids| second_of_id(ids.last()).since(self.clock.now()) > ID_LEAD_MAX)
    }

    /// Brings forward messages that would wait longer than `pause_max` after their last attempt, or whose last attempt
    /// or acceptance lies in the future. Messages whose `send_at` is in the future again become scheduled. Skips
    /// claimed messages. Returns the number of changed messages.
    pub async fn correct_due_times(&self, pause_max: Duration) -> Result<usize> {
        let (mut changed, mut after): (usize, Option<QueuePosition>) = (0, None);
        loop {
            let now = self.clock.now();
            let (count, next) = match &*self.engine {
                Engine::Sqlite { engine, .. } => {
                    engine.correct_due_times(now, pause_max, after, ROWS_PER_TRANSACTION).await?
                }
                Engine::Postgres(_) => {
                    self.write(move |sql| {
                        Box::pin(queue::correct_page(sql, now, pause_max, after, ROWS_PER_TRANSACTION))
                    })
                    .await?
                }
            };
            changed += count;
            after = next;
            if after.is_none() {
                return Ok(changed);
            }
        }
    }

    /// Brings forward webhook events that would wait longer than the pause after their last attempt. `pauses` are the
    /// pauses after the first attempt, the second, … Returns the number of changed events.
    pub async fn correct_webhook_due_times(&self, pauses: Vec<Duration>) -> Result<u64> {
        let mut changed = 0;
        let mut after = Some(outbox::START);
        while let Some(from) = after {
            let now = self.clock.now();
            let (page, needs_correction) =
                self.read(move |sql| Box::pin(outbox::find_page(sql, now, from, OUTBOX_PAGE_ROWS))).await?;
            if needs_correction {
                let pauses = pauses.clone();
                changed += self
                    .write(move |sql| {
                        Box::pin(async move { outbox::bring_forward(sql, now, &pauses, page).await })
                    })
                    .await?;
            }
            after = page.next();
        }
        Ok(changed)
    }

    /// Corrects holds, gates, message limits, warm-ups, the health of webhooks, and idempotency keys, which expire
    /// `key_lifetime` after their first use.
    pub async fn correct_holds_and_limits(&self, key_lifetime: Duration) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(tables::correct_small_tables(sql, now))).await?;
        self.notify_change();
        // Each transaction reads the clock: with the time of the loop's start, holds stored meanwhile would look too
        // long. The loop ends at the first page that is not full.
        loop {
            let now = self.clock.now();
            let count = self
                .write(move |sql| Box::pin(tables::shorten_holds(sql, now, ROWS_PER_TRANSACTION)))
                .await?;
            if count < ROWS_PER_TRANSACTION as u64 {
                break;
            }
        }
        loop {
            let now = self.clock.now();
            let count = self
                .write(move |sql| {
                    Box::pin(tables::shorten_idempotency_keys(sql, now, key_lifetime, ROWS_PER_TRANSACTION))
                })
                .await?;
            if count < ROWS_PER_TRANSACTION as u64 {
                return Ok(());
            }
        }
    }
}
