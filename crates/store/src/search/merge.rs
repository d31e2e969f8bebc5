//! Merges consecutive blocks into one, so that a search through many messages looks into few blocks.
//!
//! The merged postings are written beside the parts' postings, under a key that no search reads yet. One transaction
//! then makes the merged block visible. The parts stay for a minute: a search that has listed them still finds their
//! postings. `blocks.rs` names the states in the SQL.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use postroad_model::{ServerId, Timestamp};

use super::blocks;
use super::build::{IndexProgress, ROWS_PER_STEP, STEP_PAUSE};
use super::postings::{decode_positions, encode_ids, encode_positions};
use super::{remove, statements};
use crate::sql::{Row, Sql};
use crate::{Result, Store};

/// If a writer is silent for this long, another node may merge the blocks.
const CLAIM_DURATION: Duration = Duration::from_mins(1);
/// A claim is renewed when less than this time is left of it.
const RENEWAL_TIME_LEFT: Duration = Duration::from_secs(30);
/// Tokens of each part that are read together.
const TOKENS_PER_STEP: i64 = 500;
/// Searches that listed the parts are over after this time.
const REPLACED_PARTS_RETENTION: Duration = Duration::from_mins(1);

/// A block that becomes a part of another one.
#[derive(Debug, Clone, Copy)]
struct Part {
    first_id: i64,
    last_id: i64,
    /// Position of the part's first message in the merged block.
    offset: u32,
}

/// The blocks to merge, with the ids of their messages.
struct BlocksToMerge {
    parts: Vec<Part>,
    ids: Vec<i64>,
}

/// The right to merge blocks of a server. The claim ends at `until`, or when the postings of a part change.
#[derive(Debug, Clone, Copy)]
struct Claim {
    server_id: ServerId,
    first_id: i64,
    /// End of the claim, as in the row of the first block.
    until: Timestamp,
}

/// Merged postings of a range of tokens.
struct TokenRange {
    postings: Vec<(i64, Vec<u8>)>,
    /// The first token after the range; `None` at the end.
    next: Option<i64>,
}

impl Store {
    /// Servers that may have blocks to merge.
    pub async fn list_servers_with_checked_blocks(&self) -> Result<Vec<ServerId>> {
        let text = "SELECT DISTINCT server_id FROM search_blocks WHERE state = 2";
        self.fetch_all(text, Vec::new(), |row| Ok(ServerId(row.int(0)?))).await
    }

    /// Merges the oldest `count` checked blocks of a server into one. Any node may call this: only one node merges.
    pub async fn merge_next_blocks(&self, server_id: ServerId, count: usize) -> Result<IndexProgress> {
        let found = self.read(move |sql| Box::pin(find_parts(sql, server_id, count))).await?;
        let Some(BlocksToMerge { parts, ids }) = found else { return Ok(IndexProgress::Nothing) };
        let now = self.clock.now();
        let claim = Claim { server_id, first_id: parts[0].first_id, until: now.plus(CLAIM_DURATION) };
        let text = "UPDATE search_blocks SET claimed_until = $3
                    WHERE server_id = $1 AND first_id = $2 AND state = 2 AND claimed_until <= $4";
        let params = vec![server_id.0.into(), claim.first_id.into(), claim.until.into(), now.into()];
        if self.execute(text, params).await? == 0 {
            return Ok(IndexProgress::Nothing);
        }
        let Some(claim) = self.remove_interrupted_merge(claim).await? else {
            return Ok(IndexProgress::Nothing);
        };
        let Some(claim) = self.write_merged_postings(claim, &parts).await? else {
            return Ok(IndexProgress::Nothing);
        };
        let last_id = parts[parts.len() - 1].last_id;
        let ids = encode_ids(&ids);
        let now = self.clock.now();
        let is_done = self.write(move |sql| Box::pin(replace_parts(sql, claim, last_id, ids, now))).await?;
        Ok(if is_done { IndexProgress::Added } else { IndexProgress::Nothing })
    }

    /// Removes some rows of the parts of a merged block. `false` if no parts are left, or if searches may still read
    /// them.
    pub async fn remove_merged_parts(&self) -> Result<bool> {
        let text = statements::MERGED_WITH_PARTS;
        let read = |row: &Row| Ok((ServerId(row.int(0)?), row.int(1)?, row.int(2)?));
        let found = self.fetch_opt(text, vec![self.clock.now().into()], read).await?;
        let Some((server_id, first_id, last_id)) = found else { return Ok(false) };
        self.write(move |sql| Box::pin(remove_part(sql, server_id, first_id, last_id))).await?;
        tokio::time::sleep(STEP_PAUSE).await;
        Ok(true)
    }

    /// Removes postings of a merge that did not finish: a person may have been erased since. `None` if the claim is
    /// lost.
    async fn remove_interrupted_merge(&self, mut claim: Claim) -> Result<Option<Claim>> {
        loop {
            let now = self.clock.now();
            let removed = self
                .write(move |sql| {
                    Box::pin(async move {
                        let Some(claim) = renew(sql, claim, now).await? else { return Ok(None) };
                        let key = blocks::merged_key(claim.first_id);
                        Ok(Some((claim, remove::delete_some_postings(sql, claim.server_id, key).await?)))
                    })
                })
                .await?;
            let Some((renewed, rows)) = removed else { return Ok(None) };
            if rows == 0 {
                return Ok(Some(renewed));
            }
            claim = renewed;
            tokio::time::sleep(STEP_PAUSE).await;
        }
    }

    /// Writes the merged postings in steps. `None` if the claim is lost.
    async fn write_merged_postings(&self, mut claim: Claim, parts: &[Part]) -> Result<Option<Claim>> {
        let mut from = Some(i64::MIN);
        while let Some(first) = from {
            let (server_id, parts) = (claim.server_id, parts.to_vec());
            let read = self
                .read(move |sql| Box::pin(async move { read_range(sql, server_id, &parts, first).await }));
            let TokenRange { postings, next } = read.await?;
            for chunk in postings.chunks(ROWS_PER_STEP) {
                let (chunk, now) = (chunk.to_vec(), self.clock.now());
                let renewed = self
                    .write(move |sql| {
                        Box::pin(async move {
                            let Some(claim) = renew(sql, claim, now).await? else { return Ok(None) };
                            let key = blocks::merged_key(claim.first_id);
                            blocks::write_postings(sql, claim.server_id, key, &chunk).await?;
                            Ok(Some(claim))
                        })
                    })
                    .await?;
                let Some(renewed) = renewed else { return Ok(None) };
                claim = renewed;
                tokio::time::sleep(STEP_PAUSE).await;
            }
            from = next;
        }
        Ok(Some(claim))
    }
}

/// The oldest checked blocks, if there are enough and no other block lies between them.
async fn find_parts(sql: &Sql<'_>, server_id: ServerId, count: usize) -> Result<Option<BlocksToMerge>> {
    let rows = sql.query(statements::CHECKED_BLOCKS, &[server_id.0.into(), (count as i64).into()]).await?;
    let mut parts = Vec::with_capacity(count);
    for row in &rows {
        parts.push(Part { first_id: row.int(0)?, last_id: row.int(1)?, offset: 0 });
    }
    let follow = |pair: &[Part]| pair[0].last_id + 1 == pair[1].first_id;
    if count < 2 || parts.len() < count || !parts.windows(2).all(follow) {
        return Ok(None);
    }
    let keys: Vec<i64> = parts.iter().map(|part| part.first_id).collect();
    let ids_of: HashMap<i64, Vec<i64>> = blocks::read_ids(sql, server_id, &keys).await?;
    let mut ids = Vec::new();
    for part in &mut parts {
        part.offset = ids.len() as u32;
        ids.extend(ids_of.get(&part.first_id).into_iter().flatten());
    }
    Ok(Some(BlocksToMerge { parts, ids }))
}

/// The claim, renewed if it would end soon; `None` if the claim is lost.
async fn renew(sql: &Sql<'_>, claim: Claim, now: Timestamp) -> Result<Option<Claim>> {
    let text = if sql.is_sqlite() { statements::CLAIM_SQLITE } else { statements::CLAIM_POSTGRES };
    let params = [claim.server_id.0.into(), claim.first_id.into(), claim.until.into()];
    if sql.query_opt(text, &params).await?.is_none() {
        return Ok(None);
    }
    if claim.until > now.plus(RENEWAL_TIME_LEFT) {
        return Ok(Some(claim));
    }
    let until = now.plus(CLAIM_DURATION);
    let text = "UPDATE search_blocks SET claimed_until = $3 WHERE server_id = $1 AND first_id = $2";
    sql.execute(text, &[claim.server_id.0.into(), claim.first_id.into(), until.into()]).await?;
    Ok(Some(Claim { until, ..claim }))
}

/// Merged postings from the token `from` on, at most `TOKENS_PER_STEP` of each part.
async fn read_range(sql: &Sql<'_>, server_id: ServerId, parts: &[Part], from: i64) -> Result<TokenRange> {
    let mut last = i64::MAX;
    for part in parts {
        let params = [server_id.0.into(), part.first_id.into(), from.into(), (TOKENS_PER_STEP - 1).into()];
        if let Some(row) = sql.query_opt(statements::NTH_TOKEN, &params).await? {
            last = last.min(row.int(0)?);
        }
    }
    let mut merged: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    for part in parts {
        let params = [server_id.0.into(), part.first_id.into(), from.into(), last.into()];
        sql.for_each_row(statements::TOKENS_BETWEEN, &params, |row| {
            let positions = merged.entry(row.int(0)?).or_default();
            positions.extend(decode_positions(row.blob(1)?)?.iter().map(|position| position + part.offset));
            Ok(())
        })
        .await?;
    }
    let postings = merged.into_iter().map(|(token, positions)| (token, encode_positions(&positions)));
    Ok(TokenRange { postings: postings.collect(), next: last.checked_add(1) })
}

/// Makes the merged block visible in place of its parts. `false` if the claim is lost.
async fn replace_parts(
    sql: &Sql<'_>,
    claim: Claim,
    last_id: i64,
    ids: Vec<u8>,
    now: Timestamp,
) -> Result<bool> {
    let Some(Claim { server_id, first_id, .. }) = renew(sql, claim, now).await? else { return Ok(false) };
    let text =
        "UPDATE search_blocks SET state = $4 WHERE server_id = $1 AND first_id > $2 AND first_id <= $3";
    let params = [server_id.0.into(), first_id.into(), last_id.into(), blocks::REPLACED.into()];
    sql.execute(text, &params).await?;
    let text = "UPDATE search_blocks SET state = $6, last_id = $3, ids = $4, claimed_until = $5
                WHERE server_id = $1 AND first_id = $2";
    // In a merged block, `claimed_until` is the time until which its parts are kept; 0: none are left.
    let kept_until = now.plus(REPLACED_PARTS_RETENTION);
    let (server_id, state) = (server_id.0.into(), blocks::MERGED.into());
    sql.execute(text, &[server_id, first_id.into(), last_id.into(), ids.into(), kept_until.into(), state])
        .await?;
    Ok(true)
}

/// Removes some rows of one part. When all parts are gone, `claimed_until` of the merged block becomes 0.
async fn remove_part(sql: &Sql<'_>, server_id: ServerId, first_id: i64, last_id: i64) -> Result<()> {
    let text = "SELECT first_id FROM search_blocks
                WHERE server_id = $1 AND first_id > $2 AND first_id <= $3 AND state = 4 ORDER BY first_id LIMIT 1";
    let part = sql.query_opt(text, &[server_id.0.into(), first_id.into(), last_id.into()]).await?;
    let part = part.map(|row| row.int(0)).transpose()?;
    // The first part has no row any more: its row became that of the merged block, whose postings have another key.
    if remove::delete_some_postings(sql, server_id, part.unwrap_or(first_id)).await? > 0 {
        return Ok(());
    }
    let (text, id) = match part {
        Some(part) => ("DELETE FROM search_blocks WHERE server_id = $1 AND first_id = $2", part),
        None => {
            ("UPDATE search_blocks SET claimed_until = 0 WHERE server_id = $1 AND first_id = $2", first_id)
        }
    };
    sql.execute(text, &[server_id.0.into(), id.into()]).await?;
    Ok(())
}
