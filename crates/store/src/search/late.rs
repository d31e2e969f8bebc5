//! Adds messages that were stored after their block was written: their node's clock was behind, or their commit took
//! long. A block is checked once, when nothing can be late any more. State 1 in the SQL is `blocks::UNCHECKED`.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use postroad_model::{ServerId, idgen};

use super::blocks;
use super::messages;
use super::postings::encode_positions;
use super::postings::{decode_ids, encode_ids};
use super::tokens;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

/// After this time every message of a block is stored, unless a node's clock is wrong by more.
const CHECKED_AFTER: Duration = Duration::from_mins(15);
/// Late messages added in one transaction.
const LATE_PER_TRANSACTION: usize = 20;

impl Store {
    /// Checks one block and returns its server; `None` if no unchecked block is old enough.
    pub async fn check_next_block(&self) -> Result<Option<ServerId>> {
        let before = idgen::first_id_at(self.clock.now().minus(CHECKED_AFTER));
        let text = "SELECT server_id, first_id, last_id FROM search_blocks WHERE state = 1 AND last_id < $1
                    ORDER BY last_id LIMIT 1";
        let read = |row: &Row| Ok((ServerId(row.int(0)?), row.int(1)?, row.int(2)?));
        let Some((server_id, first_id, last_id)) = self.fetch_opt(text, vec![before.into()], read).await?
        else {
            return Ok(None);
        };
        // Read before writing: usually nothing is late, and reading does not occupy the writer.
        let late = self.read(move |sql| Box::pin(list_late(sql, server_id, first_id, last_id))).await?;
        for chunk in late.chunks(LATE_PER_TRANSACTION) {
            let chunk = chunk.to_vec();
            self.write(move |sql| Box::pin(async move { add_late(sql, server_id, first_id, &chunk).await }))
                .await?;
        }
        let text = "UPDATE search_blocks SET state = $3, claimed_until = 0
                    WHERE server_id = $1 AND first_id = $2 AND state = 1";
        self.execute(text, vec![server_id.0.into(), first_id.into(), blocks::CHECKED.into()]).await?;
        Ok(Some(server_id))
    }
}

/// Ids of the messages in the block's range, without returned mail, that the block's id list does not contain.
pub(super) async fn list_late(
    sql: &Sql<'_>,
    server_id: ServerId,
    first_id: i64,
    last_id: i64,
) -> Result<Vec<i64>> {
    let known = blocks::read_ids(sql, server_id, &[first_id]).await?.remove(&first_id).unwrap_or_default();
    let known: HashSet<i64> = known.into_iter().collect();
    let text = "SELECT id FROM messages WHERE server_id = $1 AND id >= $2 AND id <= $3 AND bounce_for_id = 0 ORDER BY id";
    let rows = sql.query(text, &[server_id.0.into(), first_id.into(), last_id.into()]).await?;
    let ids = rows.iter().map(|row| row.int(0)).collect::<Result<Vec<i64>>>()?;
    Ok(ids.into_iter().filter(|id| !known.contains(id)).collect())
}

/// Adds late messages to their block. Does nothing if another node has added them meanwhile.
async fn add_late(sql: &Sql<'_>, server_id: ServerId, first_id: i64, late: &[i64]) -> Result<()> {
    let text = if sql.is_sqlite() {
        "SELECT ids FROM search_blocks WHERE server_id = $1 AND first_id = $2 AND state = 1"
    } else {
        "SELECT ids FROM search_blocks WHERE server_id = $1 AND first_id = $2 AND state = 1 FOR UPDATE"
    };
    let row = sql.query_opt(text, &[server_id.0.into(), first_id.into()]).await?;
    let Some(mut row) = row else { return Ok(()) };
    let mut ids = decode_ids(&row.take_blob(0)?)?;
    let mut added: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    for row in messages::read_by_ids(sql, server_id, late).await? {
        if !ids.contains(&row.id) {
            let position = ids.len() as u32;
            ids.push(row.id);
            for token in tokens::of_message(&row)? {
                added.entry(token).or_default().push(position);
            }
        }
    }
    let tokens: Vec<i64> = added.keys().copied().collect();
    let mut known = blocks::read_postings(sql, server_id, &[first_id], &tokens).await?;
    let mut rows = Vec::with_capacity(added.len());
    for (token, positions) in added {
        let mut all = known.remove(&(first_id, token)).unwrap_or_default();
        all.extend(positions);
        rows.push((token, encode_positions(&all)));
    }
    blocks::write_postings(sql, server_id, first_id, &rows).await?;
    let text = "UPDATE search_blocks SET ids = $3 WHERE server_id = $1 AND first_id = $2";
    sql.execute(text, &[server_id.0.into(), first_id.into(), encode_ids(&ids).into()]).await?;
    Ok(())
}
