//! Removing what is old. Steps are small; whoever removes much calls again, with pauses.

use crate::counting::Grain;
use crate::records::{OldRows, Removed};
use crate::verbs::retention;
use crate::{Engine, Result, Store};

/// Rows of one step. Bodies are larger, and freeing their pages takes its time.
const ROWS_AT_ONCE: usize = 500;
const BODIES_AT_ONCE: usize = 100;

impl Store {
    /// The lowest id of a message that is still queued, scheduled or held.
    pub async fn find_oldest_live(&self) -> Result<Option<i64>> {
        self.read(|sql| Box::pin(retention::find_oldest_live(sql))).await
    }

    /// The lowest id of an event that a webhook is still to be told of.
    pub async fn find_oldest_untold(&self) -> Result<Option<i64>> {
        self.read(|sql| Box::pin(retention::find_oldest_untold(sql))).await
    }

    /// Whether there is an event before this id that is not counted yet.
    pub async fn has_uncounted_before(&self, before_id: i64) -> Result<bool> {
        self.read(move |sql| Box::pin(retention::has_uncounted_before(sql, before_id))).await
    }

    /// Removes some of the rows with ids before this one. On PostgreSQL whole weeks at once, and so what is left of
    /// the week that `before_id` is in stays until all of it is old.
    pub async fn remove_old_rows(&self, which: OldRows, before_id: i64) -> Result<Removed> {
        match &*self.engine {
            Engine::Postgres(engine) if which != OldRows::EventsOfMessages => {
                let rows = engine.drop_weeks(which, before_id).await?;
                Ok(Removed { rows, has_more: false })
            }
            Engine::Sqlite { engine, .. } if which == OldRows::Bodies => {
                let rows = engine.remove_bodies(before_id, BODIES_AT_ONCE).await?;
                Ok(Removed { rows, has_more: rows == BODIES_AT_ONCE as u64 })
            }
            _ => {
                // Looking costs the writer nothing, and most of the time there is nothing to remove.
                let found =
                    self.read(move |sql| Box::pin(retention::find_server(sql, which, before_id))).await?;
                let Some(server) = found else { return Ok(Removed::default()) };
                let rows = self
                    .write(move |sql| {
                        Box::pin(retention::remove_rows(sql, which, server, before_id, ROWS_AT_ONCE))
                    })
                    .await?;
                Ok(Removed { rows, has_more: rows > 0 })
            }
        }
    }

    /// Removes some of the counters of a grain from before a moment (seconds since 1970).
    pub async fn remove_old_counters(&self, grain: Grain, before: i64) -> Result<Removed> {
        let found =
            self.read(move |sql| Box::pin(retention::find_server_with_counters(sql, grain, before))).await?;
        let Some(server) = found else { return Ok(Removed::default()) };
        let rows = self
            .write(move |sql| Box::pin(retention::remove_counters(sql, server, grain, before, ROWS_AT_ONCE)))
            .await?;
        Ok(Removed { rows, has_more: rows > 0 })
    }

    /// Likewise the days of recipient domains, and sets of dimensions; when their counters are gone.
    pub async fn remove_old_days(&self, before: i64) -> Result<Removed> {
        let found = self.read(move |sql| Box::pin(retention::find_server_with_days(sql, before))).await?;
        let Some(server) = found else { return Ok(Removed::default()) };
        let rows = self
            .write(move |sql| Box::pin(retention::remove_days(sql, server, before, ROWS_AT_ONCE)))
            .await?;
        Ok(Removed { rows, has_more: rows > 0 })
    }
}
