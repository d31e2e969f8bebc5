//! Adds the next block of a server to the index, some time after the block's messages were accepted. The transactions
//! are small, so that accepts wait only briefly. On failure the block stays unwritten, searches keep scanning its
//! messages, and the next call writes it. `blocks.rs` names the states in the SQL.

use std::collections::HashMap;
use std::time::Duration;

use postroad_model::{ServerId, Timestamp, idgen};

use super::blocks::{self, WRITING};
use super::messages::{self, SearchRow};
use super::postings::{encode_ids, encode_positions};
use super::tokens;
use super::{remove, statements};
use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

/// Only messages that are at least this old are indexed: until then, messages with smaller ids may still be committed.
const SETTLED_AFTER: Duration = Duration::from_secs(10);
/// If a writer is silent for this long, another node may write the block.
const CLAIM_DURATION: Duration = Duration::from_mins(1);
/// Postings written in one transaction. Few, because accepts wait for the transaction.
pub(super) const ROWS_PER_STEP: usize = 500;
/// Pause for accepts between two transactions.
pub(super) const STEP_PAUSE: Duration = Duration::from_millis(2);

/// Result of one call that adds or merges blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexProgress {
    /// A block was added or merged; there may be more to do.
    Added,
    /// Nothing was added: there are too few messages or blocks, another node works on them, or an erasure ended the
    /// work.
    Nothing,
}

/// A block to be written.
#[derive(Debug, Clone, Copy)]
struct NewBlock {
    server_id: ServerId,
    first_id: i64,
    last_id: i64,
    /// Whether another writer began this block and did not finish it.
    is_begun: bool,
}

/// The right to write a block. The claim ends at `until`, or when a message of the block is erased.
#[derive(Debug, Clone, Copy)]
struct Claim {
    block: NewBlock,
    /// End of the claim, as in the row of the block.
    until: Timestamp,
}

/// A block in stored form.
struct EncodedBlock {
    ids: Vec<u8>,
    postings: Vec<(i64, Vec<u8>)>,
}

impl Store {
    /// Servers with the id of their newest message (0 for none), so that callers see which servers have new messages.
    pub async fn list_newest_messages(&self) -> Result<Vec<(ServerId, i64)>> {
        let text =
            "SELECT s.id, (SELECT m.id FROM messages m WHERE m.server_id = s.id ORDER BY m.id DESC LIMIT 1)
                    FROM servers s";
        let read = |row: &Row| Ok((ServerId(row.int(0)?), row.int_opt(1)?.unwrap_or(0)));
        self.fetch_all(text, Vec::new(), read).await
    }

    /// Adds the next `size` messages of a server to the index, if at least so many are not indexed yet. Any node may
    /// call this: only one node writes a block.
    pub async fn index_next_block(&self, server_id: ServerId, size: usize) -> Result<IndexProgress> {
        let now = self.clock.now();
        let next = self.read(move |sql| Box::pin(find_next(sql, server_id, size, now))).await?;
        let Some(block) = next else { return Ok(IndexProgress::Nothing) };
        if !self.write(move |sql| Box::pin(claim_block(sql, block, now))).await? {
            return Ok(IndexProgress::Nothing);
        }
        let claim = Claim { block, until: now.plus(CLAIM_DURATION) };
        let Some(claim) = self.remove_interrupted_block(claim).await? else {
            return Ok(IndexProgress::Nothing);
        };
        let no_limit = i64::MAX;
        // Read under the claim: an erasure after this read ends the claim, so that no erased text is indexed.
        let rows = self.read(move |sql| {
            Box::pin(messages::scan_up(sql, server_id, block.first_id, block.last_id + 1, no_limit))
        });
        let rows = rows.await?;
        let encoded = tokio::task::spawn_blocking(move || encode(&rows)).await;
        let EncodedBlock { ids, postings } =
            encoded.map_err(|_| StoreError::Internal("indexing messages panicked".into()))??;
        let Some(claim) = self.write_block(claim, postings).await? else {
            return Ok(IndexProgress::Nothing);
        };
        let text = "UPDATE search_blocks SET state = $5, ids = $4 WHERE server_id = $1 AND first_id = $2
                    AND state = 0 AND claimed_until = $3";
        let (first_id, state) = (block.first_id.into(), blocks::UNCHECKED.into());
        let params = vec![server_id.0.into(), first_id, claim.until.into(), ids.into(), state];
        let is_added = self.execute(text, params).await? > 0;
        Ok(if is_added { IndexProgress::Added } else { IndexProgress::Nothing })
    }

    /// Removes the postings of a writer that did not finish: a person may have been erased since. `None` if the claim
    /// is lost.
    async fn remove_interrupted_block(&self, mut claim: Claim) -> Result<Option<Claim>> {
        while claim.block.is_begun {
            let until = self.clock.now().plus(CLAIM_DURATION);
            let removed = self
                .write(move |sql| {
                    Box::pin(async move {
                        let Some(claim) = claim.renew(sql, until).await? else { return Ok(None) };
                        let NewBlock { server_id, first_id, .. } = claim.block;
                        Ok(Some((claim, remove::delete_some_postings(sql, server_id, first_id).await?)))
                    })
                })
                .await?;
            let Some((renewed, rows)) = removed else { return Ok(None) };
            claim = renewed;
            if rows == 0 {
                break;
            }
            tokio::time::sleep(STEP_PAUSE).await;
        }
        Ok(Some(claim))
    }

    /// Writes the block's postings in steps. `None` if the claim is lost.
    async fn write_block(&self, mut claim: Claim, postings: Vec<(i64, Vec<u8>)>) -> Result<Option<Claim>> {
        let mut rest = postings.into_iter();
        loop {
            let chunk: Vec<(i64, Vec<u8>)> = rest.by_ref().take(ROWS_PER_STEP).collect();
            if chunk.is_empty() {
                return Ok(Some(claim));
            }
            let until = self.clock.now().plus(CLAIM_DURATION);
            let renewed = self
                .write(move |sql| {
                    Box::pin(async move {
                        let renewed = claim.renew(sql, until).await?;
                        if renewed.is_some() {
                            let NewBlock { server_id, first_id, .. } = claim.block;
                            blocks::write_postings(sql, server_id, first_id, &chunk).await?;
                        }
                        Ok(renewed)
                    })
                })
                .await?;
            let Some(renewed) = renewed else { return Ok(None) };
            claim = renewed;
            tokio::time::sleep(STEP_PAUSE).await;
        }
    }
}

/// The block after the newest one, or the newest one itself if its writer is gone.
async fn find_next(
    sql: &Sql<'_>,
    server_id: ServerId,
    size: usize,
    now: Timestamp,
) -> Result<Option<NewBlock>> {
    let newest = blocks::list_before(sql, server_id, i64::MAX, 1).await?.pop();
    let (first_id, end) = match newest {
        Some(block) if block.state == WRITING && block.claimed_until > now => return Ok(None),
        Some(block) if block.state == WRITING => (block.first_id, Some(block.last_id)),
        Some(block) => (block.last_id + 1, None),
        None => (0, None),
    };
    let last_id = if let Some(last_id) = end {
        last_id
    } else {
        // Reads only ids, so that checking is cheap when a block is not full yet.
        let before = idgen::first_id_at(now.minus(SETTLED_AFTER));
        let offset = (size as i64 - 1).max(0);
        let params = [server_id.0.into(), first_id.into(), before.into(), offset.into()];
        let Some(row) = sql.query_opt(statements::NTH_MESSAGE, &params).await? else { return Ok(None) };
        row.int(0)?
    };
    Ok(Some(NewBlock { server_id, first_id, last_id, is_begun: end.is_some() }))
}

/// Claims the block for this node. `false` if another node was faster.
async fn claim_block(sql: &Sql<'_>, block: NewBlock, now: Timestamp) -> Result<bool> {
    let NewBlock { server_id, first_id, last_id, .. } = block;
    let text = "INSERT INTO search_blocks (server_id, first_id, last_id, state, claimed_until, ids)
                VALUES ($1, $2, $3, 0, $4, $5)
                ON CONFLICT (server_id, first_id) DO UPDATE SET claimed_until = excluded.claimed_until
                WHERE search_blocks.state = 0 AND search_blocks.claimed_until <= $6
                AND search_blocks.last_id = excluded.last_id";
    let until = now.plus(CLAIM_DURATION);
    let params =
        [server_id.0.into(), first_id.into(), last_id.into(), until.into(), Vec::new().into(), now.into()];
    Ok(sql.execute(text, &params).await? > 0)
}

impl Claim {
    /// The renewed claim; `None` if the claim is lost.
    async fn renew(self, sql: &Sql<'_>, until: Timestamp) -> Result<Option<Self>> {
        let text = "UPDATE search_blocks SET claimed_until = $4
                    WHERE server_id = $1 AND first_id = $2 AND state = 0 AND claimed_until = $3";
        let NewBlock { server_id, first_id, .. } = self.block;
        let params = [server_id.0.into(), first_id.into(), self.until.into(), until.into()];
        Ok((sql.execute(text, &params).await? > 0).then_some(Self { until, ..self }))
    }
}

fn encode(rows: &[SearchRow]) -> Result<EncodedBlock> {
    let mut postings: HashMap<i64, Vec<u32>> = HashMap::new();
    for (position, row) in (0..).zip(rows) {
        for token in tokens::of_message(row)? {
            postings.entry(token).or_default().push(position);
        }
    }
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let mut postings: Vec<(i64, Vec<u8>)> =
        postings.into_iter().map(|(token, positions)| (token, encode_positions(&positions))).collect();
    // In table order, so that neighbouring rows are written together.
    postings.sort_unstable_by_key(|(token, _)| *token);
    Ok(EncodedBlock { ids: encode_ids(&ids), postings })
}
