//! Removes expired bodies on SQLite, where a body row does not contain its server and large bodies are files.

use postroad_model::SendId;

use super::bounds;
use super::old_rows::RemovalBound;
use super::removal::{Removal, RemovalStage};
use crate::error::StoreError;
use crate::sql::{Sql, to_json};
use crate::{Engine, Result, Store};

/// Maximum number of bodies removed in one step.
const BODIES_PER_STEP_MAX: usize = 100;
/// Maximum number of sends examined in one step.
const SENDS_PER_STEP_MAX: usize = 1_000;

impl Store {
    pub(super) async fn remove_old_bodies(&self, removal: &mut Removal, after: i64) -> Result<u64> {
        let Engine::Sqlite { engine, .. } = &*self.engine else { return Ok(0) };
        let before_id = removal.before_id;
        let needed: Vec<RemovalBound> =
            removal.bounds.iter().filter(|bound| bound.before_id < before_id).copied().collect();
        let found = self
            .read(move |sql| {
                Box::pin(
                    async move { find_bodies(sql, after, before_id, &needed, BODIES_PER_STEP_MAX).await },
                )
            })
            .await?;
        removal.stage = match found.last {
            Some(after) => RemovalStage::Bodies { after },
            None => RemovalStage::End,
        };
        if found.old.is_empty() { Ok(0) } else { engine.remove_bodies(found.old).await }
    }

    /// Removes bodies of one server. A body row does not contain its server, so bodies are found by their sends,
    /// continuing where the last removal ended.
    pub(super) async fn remove_old_bodies_of_server(
        &self,
        removal: &mut Removal,
        server_index: usize,
        after: Option<i64>,
    ) -> Result<u64> {
        let Engine::Sqlite { engine, .. } = &*self.engine else { return Ok(0) };
        let Some(bound) = removal.bounds.get(server_index).copied() else {
            removal.stage = RemovalStage::End;
            return Ok(0);
        };
        let starts = || self.body_removal_starts.lock();
        let after = after.unwrap_or_else(|| starts().get(&bound.server_id).copied().unwrap_or(0));
        let limits = (SENDS_PER_STEP_MAX, BODIES_PER_STEP_MAX);
        let found = self.read(move |sql| Box::pin(find_bodies_of_server(sql, bound, after, limits))).await?;
        let rows = if found.old.is_empty() { 0 } else { engine.remove_bodies(found.old).await? };
        removal.stage = if found.last.is_some() {
            RemovalStage::BodiesOfServer { server_index, after: found.last }
        } else {
            // The next removal begins here: only a send whose commit took longer than an hour (`IDS_PER_HOUR`) could
            // have a smaller id.
            starts().insert(bound.server_id, bound.before_id.saturating_sub(bounds::IDS_PER_HOUR));
            RemovalStage::BodiesOfServer { server_index: server_index + 1, after: None }
        };
        Ok(rows)
    }
}

/// Old bodies found in one step.
pub(crate) struct FoundBodies {
    pub(crate) old: Vec<SendId>,
    /// Id of the last examined row; `None` if no row was left to examine.
    pub(crate) last: Option<i64>,
}

/// SQLite only: finds old bodies of all servers. `needed` lists servers that need some of these bodies, each with the
/// first id that stays; a body row does not contain its server.
pub(crate) async fn find_bodies(
    sql: &Sql<'_>,
    after: i64,
    before: i64,
    needed: &[RemovalBound],
    limit: usize,
) -> Result<FoundBodies, StoreError> {
    let needed: Vec<(i64, i64)> = needed.iter().map(|bound| (bound.server_id.0, bound.before_id)).collect();
    let rows = sql
        .query(
            "SELECT b.send_id, EXISTS (
                 SELECT 1 FROM json_each($3) AS kept
                 CROSS JOIN sends s ON s.server_id = kept.value ->> 0 AND s.id = b.send_id
                 WHERE b.send_id >= kept.value ->> 1)
             FROM bodies b WHERE b.send_id > $1 AND b.send_id < $2 ORDER BY b.send_id LIMIT $4",
            &[after.into(), before.into(), to_json(&needed).into(), (limit as i64).into()],
        )
        .await?;
    let mut found = FoundBodies { old: Vec::new(), last: None };
    for row in &rows {
        found.last = Some(row.int(0)?);
        if !row.flag(1)? {
            found.old.push(SendId(row.int(0)?));
        }
    }
    Ok(found)
}

/// SQLite only: finds old bodies of one server. Examines no more sends, and finds no more bodies, than the limits.
pub(crate) async fn find_bodies_of_server(
    sql: &Sql<'_>,
    bound: RemovalBound,
    after: i64,
    (sends_max, bodies_max): (usize, usize),
) -> Result<FoundBodies, StoreError> {
    let rows = sql
        .query(
            "SELECT s.id, EXISTS (SELECT 1 FROM bodies b WHERE b.send_id = s.id) FROM sends s
             WHERE s.server_id = $1 AND s.id > $2 AND s.id < $3 ORDER BY s.id LIMIT $4",
            &[bound.server_id.0.into(), after.into(), bound.before_id.into(), (sends_max as i64).into()],
        )
        .await?;
    let mut found = FoundBodies { old: Vec::new(), last: None };
    for row in &rows {
        if found.old.len() == bodies_max {
            break;
        }
        found.last = Some(row.int(0)?);
        if row.flag(1)? {
            found.old.push(SendId(row.int(0)?));
        }
    }
    Ok(found)
}

/// SQLite only: removes bodies. Returns the number of removed rows, and the sends whose body is in a file.
pub(crate) async fn remove_bodies(sql: &Sql<'_>, old: &[SendId]) -> Result<(u64, Vec<SendId>), StoreError> {
    let old: Vec<i64> = old.iter().map(|id| id.0).collect();
    let rows = sql
        .query(
            "DELETE FROM bodies WHERE send_id IN (SELECT value FROM json_each($1)) RETURNING send_id, data IS NULL",
            &[to_json(&old).into()],
        )
        .await?;
    let mut files = Vec::new();
    for row in &rows {
        if row.flag(1)? {
            files.push(SendId(row.int(0)?));
        }
    }
    Ok((rows.len() as u64, files))
}
