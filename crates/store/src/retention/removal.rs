//! Removes expired rows in small steps. Callers repeat steps, with pauses, until nothing is left.

use std::collections::HashMap;

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use super::bounds;
use super::old_rows::{OldRows, RemovalBound};
use crate::{Engine, Result, Store};

/// Maximum number of rows removed in one step.
pub(crate) const ROWS_PER_STEP_MAX: usize = 500;

/// The next step of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemovalStage {
    Start,
    /// SQLite: bodies of any server, after this body.
    Bodies {
        after: i64,
    },
    /// SQLite: bodies of one server, given by its index in `Removal::bounds`. They are found by their sends: those
    /// after the send `after`; for `None`, those after the end of the last removal.
    BodiesOfServer {
        server_index: usize,
        after: Option<i64>,
    },
    /// Rows of one server, given by its index in `Removal::bounds`. Rows from `before_id` on stay for every server.
    Rows {
        server_index: usize,
        before_id: i64,
    },
    End,
}

/// A removal in progress. Rows that are still needed were excluded when the removal began.
#[derive(Debug)]
pub struct Removal {
    pub(crate) which: OldRows,
    pub(crate) before_id: i64,
    /// For every server, or for the selected servers, the first id that stays.
    pub(crate) bounds: Vec<RemovalBound>,
    pub(crate) stage: RemovalStage,
}

/// Result of one step of a removal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovalProgress {
    /// Number of rows; where PostgreSQL drops whole weeks of a table at once, the number of weeks.
    pub rows: u64,
    /// Whether there may be more to remove.
    pub has_more: bool,
}

/// Weeks of a table that were dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DroppedWeeks {
    pub(crate) dropped: u64,
    /// End of the last old week that stays because a server needs rows of it; `None` if no old week stays.
    pub(crate) needed_until: Option<i64>,
}

#[boxed_futures]
impl Store {
    /// Begins to remove rows with ids before this one. Rows that are still to be delivered, counted or posted to a
    /// webhook stay, with everything they depend on; the needs of one server do not keep another server's rows.
    pub async fn begin_removal(&self, which: OldRows, before_id: i64) -> Result<Removal> {
        let bounds = self.read(move |sql| Box::pin(bounds::list_bounds(sql, which, before_id))).await?;
        Ok(Removal { which, before_id, bounds, stage: RemovalStage::Start })
    }

    /// Begins a removal for some servers only, each with its own first id that stays: row by row, on PostgreSQL too.
    /// `bodies` is the preceding removal of bodies: the sends of bodies that it kept also stay, even if the reason to
    /// keep those bodies is gone by now, because a later removal finds the bodies by their sends.
    pub async fn begin_removal_of_servers(
        &self,
        which: OldRows,
        first_ids_kept: Vec<(ServerId, i64)>,
        bodies: Option<&Removal>,
    ) -> Result<Removal> {
        let mut first_ids_kept: HashMap<ServerId, i64> = first_ids_kept.into_iter().collect();
        for bound in bodies.into_iter().flat_map(|bodies| &bodies.bounds) {
            first_ids_kept.entry(bound.server_id).and_modify(|first| *first = bound.before_id.min(*first));
        }
        let mut bounds = self.read(move |sql| Box::pin(bounds::list_bounds(sql, which, i64::MAX))).await?;
        bounds.retain_mut(|bound| match first_ids_kept.get(&bound.server_id) {
            Some(first) => {
                bound.before_id = bound.before_id.min(*first);
                true
            }
            None => false,
        });
        let stage = if self.is_sqlite() && which == OldRows::Bodies {
            RemovalStage::BodiesOfServer { server_index: 0, after: None }
        } else {
            RemovalStage::Rows { server_index: 0, before_id: i64::MAX }
        };
        Ok(Removal { which, before_id: i64::MAX, bounds, stage })
    }

    /// Removes some of the rows. On PostgreSQL whole weeks are dropped at once, so a week stays until all of it is old;
    /// weeks with needed rows are cleaned row by row.
    pub async fn remove_old_rows(&self, removal: &mut Removal) -> Result<RemovalProgress> {
        let rows = match removal.stage {
            RemovalStage::Start => self.start_removal(removal).await?,
            RemovalStage::Bodies { after } => self.remove_old_bodies(removal, after).await?,
            RemovalStage::BodiesOfServer { server_index, after } => {
                self.remove_old_bodies_of_server(removal, server_index, after).await?
            }
            RemovalStage::Rows { server_index, before_id } => {
                self.remove_rows_of(removal, server_index, before_id).await?
            }
            RemovalStage::End => 0,
        };
        Ok(RemovalProgress { rows, has_more: removal.stage != RemovalStage::End })
    }

    async fn start_removal(&self, removal: &mut Removal) -> Result<u64> {
        let all = RemovalStage::Rows { server_index: 0, before_id: removal.before_id };
        match &*self.engine {
            Engine::Sqlite { .. } if removal.which == OldRows::Bodies => {
                removal.stage = RemovalStage::Bodies { after: 0 };
            }
            Engine::Postgres(engine) if removal.which != OldRows::EventsOfMessages => {
                let weeks = engine.drop_weeks(removal.which, removal.before_id, &removal.bounds).await?;
                let rest = |before_id| RemovalStage::Rows { server_index: 0, before_id };
                removal.stage = weeks.needed_until.map_or(RemovalStage::End, rest);
                return Ok(weeks.dropped);
            }
            _ => removal.stage = all,
        }
        Ok(0)
    }
}
