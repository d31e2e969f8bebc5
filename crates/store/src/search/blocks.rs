//! Rows of the search index: blocks and postings.

use std::collections::HashMap;

use postroad_model::{ServerId, Timestamp};

use super::postings::{decode_ids, decode_positions};
use super::statements;
use crate::Result;
use crate::sql::{Sql, to_json};

// Values of `search_blocks.state`. SQL texts contain the numbers.

/// Being written.
pub(super) const WRITING: i64 = 0;
/// Written, but not yet checked for messages that were stored late.
pub(super) const UNCHECKED: i64 = 1;
/// Written and checked for late messages.
pub(super) const CHECKED: i64 = 2;
/// Merged from other blocks.
pub(super) const MERGED: i64 = 3;
/// Replaced by a merged block; kept for searches that listed it before.
pub(super) const REPLACED: i64 = 4;

/// Number of blocks that are merged into one.
pub const BLOCKS_PER_MERGE: usize = 16;

/// A range of message ids that the index covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) first_id: i64,
    pub(super) last_id: i64,
    pub(super) state: i64,
    /// End of the claim of the node that writes or merges the block. In a merged block: until when its parts are kept.
    pub(super) claimed_until: Timestamp,
}

impl Block {
    /// Key of the block's postings.
    pub(super) fn key(&self) -> i64 {
        if self.state == MERGED { merged_key(self.first_id) } else { self.first_id }
    }

    /// About how many small blocks its messages would fill.
    pub(super) fn weight(&self) -> usize {
        if self.state == MERGED { BLOCKS_PER_MERGE } else { 1 }
    }
}

/// Key of a merged block's postings: not `first_id`, which is the key of its first part's postings. Ids are never
/// negative and these keys always are, so they do not collide.
pub(super) fn merged_key(first_id: i64) -> i64 {
    !first_id
}

/// Blocks whose first id is below `before`, newest first, without the parts of merged blocks.
pub(super) async fn list_before(
    sql: &Sql<'_>,
    server_id: ServerId,
    before: i64,
    limit: i64,
) -> Result<Vec<Block>> {
    let rows = sql.query(statements::BLOCKS, &[server_id.0.into(), before.into(), limit.into()]).await?;
    let read = |row: &crate::sql::Row| {
        let (first_id, last_id, state) = (row.int(0)?, row.int(1)?, row.int(2)?);
        Ok(Block { first_id, last_id, state, claimed_until: row.time(3)? })
    };
    rows.iter().map(read).collect()
}

/// Positions of messages in the id list of their block, by the block's key and the token.
pub(super) type Postings = HashMap<(i64, i64), Vec<u32>>;

/// Reads the postings of each token in each block: one index look-up per pair. `blocks` are keys (`Block::key`).
pub(super) async fn read_postings(
    sql: &Sql<'_>,
    server_id: ServerId,
    blocks: &[i64],
    tokens: &[i64],
) -> Result<Postings> {
    let text = if sql.is_sqlite() { statements::POSTINGS_SQLITE } else { statements::POSTINGS_POSTGRES };
    let params = [server_id.0.into(), to_json(&blocks).into(), to_json(&tokens).into()];
    let mut postings = Postings::new();
    sql.for_each_row(text, &params, |row| {
        postings.insert((row.int(0)?, row.int(1)?), decode_positions(row.blob(2)?)?);
        Ok(())
    })
    .await?;
    Ok(postings)
}

/// Ids of the messages of blocks, by the block's `first_id`. `blocks` contains values of `first_id`, also for merged
/// blocks.
pub(super) async fn read_ids(
    sql: &Sql<'_>,
    server_id: ServerId,
    blocks: &[i64],
) -> Result<HashMap<i64, Vec<i64>>> {
    let text = if sql.is_sqlite() { statements::IDS_SQLITE } else { statements::IDS_POSTGRES };
    let rows = sql.query(text, &[server_id.0.into(), to_json(&blocks).into()]).await?;
    rows.into_iter().map(|mut row| Ok((row.int(0)?, decode_ids(&row.take_blob(1)?)?))).collect()
}

/// Writes postings; replaces postings of an interrupted writer.
pub(super) async fn write_postings(
    sql: &Sql<'_>,
    server_id: ServerId,
    block: i64,
    rows: &[(i64, Vec<u8>)],
) -> Result<()> {
    if let Sql::Postgres(transaction) = sql {
        let tokens: Vec<i64> = rows.iter().map(|(token, _)| *token).collect();
        let positions: Vec<&[u8]> = rows.iter().map(|(_, positions)| positions.as_slice()).collect();
        let text = "INSERT INTO search_postings (server_id, block, token, positions)
             SELECT $1, $2, row.* FROM unnest($3::bigint[], $4::bytea[]) AS row (token, positions)
             ON CONFLICT (server_id, block, token) DO UPDATE SET positions = excluded.positions";
        let write = transaction.prepare_cached(text).await?;
        transaction.execute(&write, &[&server_id.0, &block, &tokens, &positions]).await?;
        return Ok(());
    }
    let text =
        "INSERT OR REPLACE INTO search_postings (server_id, block, token, positions) VALUES ($1, $2, $3, $4)";
    for (token, positions) in rows {
        let params = [server_id.0.into(), block.into(), (*token).into(), positions.clone().into()];
        sql.execute(text, &params).await?;
    }
    Ok(())
}
