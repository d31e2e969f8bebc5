//! Finds the messages that have the tokens of a search, block by block.
//!
//! Each look-up of a token in a block costs about the same, however few messages have it. A search for a rare text
//! looks into every block of the index. So tokens are looked up one after the other, rare ones first, and only in
//! blocks where a match is still possible.

use std::collections::HashMap;

use postroad_model::ServerId;

use super::blocks;
use super::plan::Plan;
use super::postings::intersect;
use crate::Result;
use crate::sql::Sql;

/// With at most this many candidates left in a block, reading them costs no more than looking up another token.
const FEW_CANDIDATES: usize = 4;

/// Positions of candidate messages in the id list of their block, by the block's key.
type Candidates = HashMap<i64, Vec<u32>>;

/// How many messages per block have each token, in the blocks that the search has read.
#[derive(Debug, Default)]
pub(super) struct Frequencies(HashMap<i64, Frequency>);

#[derive(Debug, Default, Clone, Copy)]
struct Frequency {
    blocks: u64,
    messages: u64,
}

impl Frequencies {
    fn add(&mut self, token: i64, blocks: usize, messages: usize) {
        let frequency = self.0.entry(token).or_default();
        frequency.blocks += blocks as u64;
        frequency.messages += messages as u64;
    }

    /// Messages per 1,000 blocks; 0 for a token that was not looked up yet, so that such a token comes first.
    fn of(&self, token: i64) -> u64 {
        self.0.get(&token).map_or(0, |seen| seen.messages.saturating_mul(1_000) / seen.blocks.max(1))
    }
}

/// Candidates in these blocks, given as keys (`Block::key`); blocks without candidates are left out.
pub(super) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    plan: &Plan,
    blocks: &[i64],
    frequencies: &mut Frequencies,
) -> Result<Candidates> {
    let mut found: Option<Candidates> = None;
    for token_sets in plan.clauses() {
        let possible: Vec<i64> = match &found {
            None => blocks.to_vec(),
            Some(found) => found.keys().copied().collect(),
        };
        let mut in_any_set = Candidates::new();
        for tokens in token_sets {
            for (block, positions) in
                find_with_all_tokens(sql, server_id, tokens, &possible, frequencies).await?
            {
                in_any_set.entry(block).or_default().extend(positions);
            }
        }
        for positions in in_any_set.values_mut() {
            positions.sort_unstable();
            positions.dedup();
        }
        if let Some(before) = found {
            narrow(&mut in_any_set, &before);
        }
        found = Some(in_any_set);
    }
    Ok(found.unwrap_or_default())
}

/// Positions of the messages that have all tokens. May contain a few other messages, which the exact test excludes
/// later.
async fn find_with_all_tokens(
    sql: &Sql<'_>,
    server_id: ServerId,
    tokens: &[i64],
    blocks: &[i64],
    frequencies: &mut Frequencies,
) -> Result<Candidates> {
    let mut tokens = tokens.to_vec();
    tokens.sort_by_key(|token| frequencies.of(*token));
    let mut found: Option<Candidates> = None;
    for token in tokens {
        let keys: Vec<i64> = match &found {
            None => blocks.to_vec(),
            Some(found) => {
                let many = found.iter().filter(|(_, positions)| positions.len() > FEW_CANDIDATES);
                many.map(|(block, _)| *block).collect()
            }
        };
        if keys.is_empty() {
            break;
        }
        let read = blocks::read_postings(sql, server_id, &keys, &[token]).await?;
        let messages = read.values().map(Vec::len).sum();
        frequencies.add(token, keys.len(), messages);
        let mut with_token: Candidates =
            read.into_iter().map(|((block, _), positions)| (block, positions)).collect();
        if let Some(before) = found {
            narrow(&mut with_token, &before);
            with_token.extend(before.into_iter().filter(|(_, positions)| positions.len() <= FEW_CANDIDATES));
        }
        found = Some(with_token);
    }
    Ok(found.unwrap_or_default())
}

/// Keeps the positions that were candidates before.
fn narrow(candidates: &mut Candidates, before: &Candidates) {
    candidates.retain(|block, positions| {
        *positions = before.get(block).map_or_else(Vec::new, |before| intersect(before, positions));
        !positions.is_empty()
    });
}
