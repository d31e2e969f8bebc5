//! Removing what is old. Steps are small; whoever removes much calls again, with pauses.

use std::collections::HashMap;
use std::sync::PoisonError;

use postroad_model::ServerId;

use crate::counting::Grain;
use crate::records::{Cut, OldRows, Removal, RemovalStage, Removed};
use crate::verbs::{needs, retention};
use crate::{Engine, Result, Store};

/// Rows of one step. Bodies are larger, and freeing their pages takes its time.
const ROWS_AT_ONCE: usize = 500;
const BODIES_AT_ONCE: usize = 100;
/// Sends of one step that are looked at for them.
const SENDS_AT_ONCE: usize = 1_000;

impl Store {
    /// Begins to remove rows with ids before this one. What is still to be delivered, counted or told to a webhook stays,
    /// with what belongs to it; nobody's needs keep another server's rows.
    pub async fn begin_removal(&self, which: OldRows, before_id: i64) -> Result<Removal> {
        let cuts = self.read(move |sql| Box::pin(needs::list_cuts(sql, which, before_id))).await?;
        Ok(Removal { which, before_id, cuts, stage: RemovalStage::Start })
    }

    /// The same for some servers only, each with its own first id that stays: row by row, on PostgreSQL too. Nothing goes
    /// that the removal of bodies before it left the text of: what it was held back by may be done by now, and without
    /// its send nobody would find the text.
    pub async fn begin_removal_of(
        &self,
        which: OldRows,
        firsts: Vec<(ServerId, i64)>,
        bodies: Option<&Removal>,
    ) -> Result<Removal> {
        let mut firsts: HashMap<ServerId, i64> = firsts.into_iter().collect();
        for cut in bodies.into_iter().flat_map(|bodies| &bodies.cuts) {
            firsts.entry(cut.server_id).and_modify(|first| *first = cut.before_id.min(*first));
        }
        let mut cuts = self.read(move |sql| Box::pin(needs::list_cuts(sql, which, i64::MAX))).await?;
        cuts.retain_mut(|cut| match firsts.get(&cut.server_id) {
            Some(first) => {
                cut.before_id = cut.before_id.min(*first);
                true
            }
            None => false,
        });
        let stage = if self.is_sqlite() && which == OldRows::Bodies {
            RemovalStage::BodiesOf { server: 0, after: None }
        } else {
            RemovalStage::Rows { server: 0, before_id: i64::MAX }
        };
        Ok(Removal { which, before_id: i64::MAX, cuts, stage })
    }

    /// Removes some of them. On PostgreSQL whole weeks at once, and so what is left of the week that the first id that
    /// stays is in stays until all of it is old; weeks with something that is needed go row by row.
    pub async fn remove_old_rows(&self, removal: &mut Removal) -> Result<Removed> {
        let rows = match removal.stage {
            RemovalStage::Start => self.start_removal(removal).await?,
            RemovalStage::Bodies { after } => self.remove_old_bodies(removal, after).await?,
            RemovalStage::BodiesOf { server, after } => {
                self.remove_old_bodies_of(removal, server, after).await?
            }
            RemovalStage::Rows { server, before_id } => {
                self.remove_rows_of(removal, server, before_id).await?
            }
            RemovalStage::End => 0,
        };
        Ok(Removed { rows, has_more: removal.stage != RemovalStage::End })
    }

    async fn start_removal(&self, removal: &mut Removal) -> Result<u64> {
        let all = RemovalStage::Rows { server: 0, before_id: removal.before_id };
        match &*self.engine {
            Engine::Sqlite { .. } if removal.which == OldRows::Bodies => {
                removal.stage = RemovalStage::Bodies { after: 0 };
            }
            Engine::Postgres(engine) if removal.which != OldRows::EventsOfMessages => {
                let weeks = engine.drop_weeks(removal.which, removal.before_id, &removal.cuts).await?;
                let rest = |before_id| RemovalStage::Rows { server: 0, before_id };
                removal.stage = weeks.kept_before.map_or(RemovalStage::End, rest);
                return Ok(weeks.dropped);
            }
            _ => removal.stage = all,
        }
        Ok(0)
    }

    /// Looking costs the writer nothing, and most of the time there is nothing to remove.
    async fn remove_rows_of(&self, removal: &mut Removal, server: usize, before_id: i64) -> Result<u64> {
        let which = removal.which;
        for (server, cut) in removal.cuts.iter().enumerate().skip(server) {
            let cut = Cut { before_id: cut.before_id.min(before_id), ..*cut };
            if self.read(move |sql| Box::pin(retention::has_rows(sql, which, cut))).await? {
                let rows = self
                    .write(move |sql| Box::pin(retention::remove_rows(sql, which, cut, ROWS_AT_ONCE)))
                    .await?;
                removal.stage = RemovalStage::Rows { server, before_id };
                return Ok(rows);
            }
        }
        removal.stage = RemovalStage::End;
        Ok(0)
    }

    async fn remove_old_bodies(&self, removal: &mut Removal, after: i64) -> Result<u64> {
        let Engine::Sqlite { engine, .. } = &*self.engine else { return Ok(0) };
        let before_id = removal.before_id;
        let kept: Vec<Cut> = removal.cuts.iter().filter(|cut| cut.before_id < before_id).copied().collect();
        let found = self
            .read(move |sql| {
                Box::pin(
                    async move { retention::find_bodies(sql, after, before_id, &kept, BODIES_AT_ONCE).await },
                )
            })
            .await?;
        removal.stage = match found.last {
            Some(after) => RemovalStage::Bodies { after },
            None => RemovalStage::End,
        };
        if found.old.is_empty() { Ok(0) } else { engine.remove_bodies(found.old).await }
    }

    /// A body says nothing of its server, so they are found by their sends: those after where the last removal ended.
    async fn remove_old_bodies_of(
        &self,
        removal: &mut Removal,
        server: usize,
        after: Option<i64>,
    ) -> Result<u64> {
        let Engine::Sqlite { engine, .. } = &*self.engine else { return Ok(0) };
        let Some(cut) = removal.cuts.get(server).copied() else {
            removal.stage = RemovalStage::End;
            return Ok(0);
        };
        let gone = || self.bodies_gone.lock().unwrap_or_else(PoisonError::into_inner);
        let after = after.unwrap_or_else(|| gone().get(&cut.server_id).copied().unwrap_or(0));
        let limits = (SENDS_AT_ONCE, BODIES_AT_ONCE);
        let found =
            self.read(move |sql| Box::pin(retention::find_bodies_of(sql, cut, after, limits))).await?;
        let rows = if found.old.is_empty() { 0 } else { engine.remove_bodies(found.old).await? };
        removal.stage = if found.last.is_some() {
            RemovalStage::BodiesOf { server, after: found.last }
        } else {
            // Only what was accepted long before it was committed could still come before this.
            gone().insert(cut.server_id, cut.before_id.saturating_sub(needs::SPREAD));
            RemovalStage::BodiesOf { server: server + 1, after: None }
        };
        Ok(rows)
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
