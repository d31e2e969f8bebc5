//! Finds a page of messages, newest first, in short reads, so that other reads are not delayed. A search with few
//! matches stops at its time limit, and the next page continues where it stopped.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postroad_model::{MessageId, ServerId};

use super::blocks::{self, Block, UNCHECKED, WRITING};
use super::candidates::{self, Frequencies};
use super::filter::SearchFilter;
use super::late::list_late;
use super::messages::{self, SearchItem, SearchRow};
use super::plan::{ListedStatuses, Plan};
use super::statements;
use crate::sql::Sql;
use crate::{Result, Store};

/// Messages examined in one read; later reads that scan messages examine `ROWS_PER_SCAN`.
const ROWS_PER_STEP: usize = 500;
/// Messages examined in each read that scans messages instead of using the index, except in the search's first read.
const ROWS_PER_SCAN: usize = 2_000;
/// Maximum number of blocks whose postings are read at once; a merged block counts as many as its parts.
const BLOCKS_PER_STEP: usize = 2_048;
/// A read examines at most this many times as many blocks as the previous read did.
const STEP_GROWTH_MAX: u128 = 8;
/// Number of blocks whose lists of ids are read together.
const ID_LISTS_PER_READ: usize = 16;
/// With more candidates than this in a block, the messages with the wanted statuses are listed first. If
/// that list is short enough (`retain_listed`), the other candidates are dropped unread.
const UNLISTED_CANDIDATES_MAX: usize = 64;

/// A page of the messages that a search found, newest first.
#[derive(Debug, Default)]
pub struct SearchPage {
    pub items: Vec<SearchItem>,
    /// The next page begins before this message; `None` at the end.
    pub next: Option<MessageId>,
}

/// Result of one read. The next read continues below `before_id`.
struct Step {
    rows: Vec<SearchRow>,
    before_id: i64,
    /// Whether the read used blocks of the index, rather than scanning messages or listing them by status.
    is_of_blocks: bool,
    /// Whether the read ended before the end of its blocks, because the blocks have many candidates.
    is_cut: bool,
}

/// Progress of a search.
#[derive(Debug, Clone, Copy)]
struct SearchProgress {
    server_id: ServerId,
    /// The search continues with messages before this id.
    before_id: i64,
    /// Maximum number of blocks to examine in one read; a merged block counts as many as its parts.
    blocks_max: usize,
    /// Maximum number of messages to examine in one read that scans messages instead of using the index.
    scan_max: usize,
    /// Whether messages that were stored after their block was written are found too.
    finds_late: bool,
}

impl Store {
    /// Finds messages of a server with ids below `before`, newest first. Ends with a full page, at the oldest message,
    /// or after `time_max`.
    pub async fn search(
        &self,
        server_id: ServerId,
        filter: &Arc<SearchFilter>,
        before: Option<MessageId>,
        limit: usize,
        time_max: Duration,
    ) -> Result<SearchPage> {
        let finds_late = false;
        self.search_page(server_id, filter, before, limit, time_max, finds_late).await
    }

    /// Like `search`, but also finds messages that were stored after their block was written. That costs a read of the
    /// ids of each block of the last minutes.
    pub async fn search_with_late(
        &self,
        server_id: ServerId,
        filter: &Arc<SearchFilter>,
        before: Option<MessageId>,
        limit: usize,
        time_max: Duration,
    ) -> Result<SearchPage> {
        let finds_late = true;
        self.search_page(server_id, filter, before, limit, time_max, finds_late).await
    }

    async fn search_page(
        &self,
        server_id: ServerId,
        filter: &Arc<SearchFilter>,
        before: Option<MessageId>,
        limit: usize,
        time_max: Duration,
        finds_late: bool,
    ) -> Result<SearchPage> {
        let plan = Arc::new(Plan::of(filter));
        let begun = Instant::now();
        let mut before_id = before.map_or(i64::MAX, |id| id.0).min(plan.end_id);
        let mut rows: Vec<SearchRow> = Vec::new();
        // The first reads are small: usually the newest messages are enough.
        let mut blocks_max = 1;
        let mut scan_max = ROWS_PER_STEP;
        let mut is_first = true;
        let mut frequencies = Frequencies::default();
        while rows.len() <= limit && before_id > plan.first_id && (is_first || begun.elapsed() < time_max) {
            is_first = false;
            let step_begun = Instant::now();
            let (filter, plan) = (Arc::clone(filter), Arc::clone(&plan));
            let progress = SearchProgress { server_id, before_id, blocks_max, scan_max, finds_late };
            let read = self.read(move |sql| {
                Box::pin(async move {
                    let step = read_step(sql, &filter, &plan, progress, &mut frequencies).await?;
                    Ok((step, frequencies))
                })
            });
            let step;
            (step, frequencies) = read.await?;
            let found = step.rows.len();
            rows.extend(step.rows);
            before_id = step.before_id;
            scan_max = ROWS_PER_SCAN;
            blocks_max = if step.is_cut {
                // Postings of more blocks would only be read again.
                1
            } else if step.is_of_blocks {
                // Half of the time that is left, because older blocks can have more candidates.
                let left = time_max.saturating_sub(begun.elapsed()) / 2;
                let by_time = step_growth(step_begun.elapsed(), left);
                let by_need = (limit + 1).saturating_sub(rows.len()).div_ceil(found.max(1)).max(1);
                (blocks_max * by_time.min(by_need)).min(BLOCKS_PER_STEP)
            } else {
                blocks_max
            };
        }
        let next = match rows.get(limit) {
            Some(_) => {
                rows.truncate(limit);
                rows.last().map(|row| MessageId(row.id))
            }
            None => (before_id > plan.first_id).then_some(MessageId(before_id)),
        };
        let mut items = rows.into_iter().map(SearchRow::into_item).collect::<Result<Vec<SearchItem>>>()?;
        if items.iter().any(|item| item.status == postroad_model::Status::Held) {
            items = self
                .read(move |sql| {
                    Box::pin(async move {
                        messages::add_held_reasons(sql, server_id, &mut items).await?;
                        Ok(items)
                    })
                })
                .await?;
        }
        Ok(SearchPage { items, next })
    }
}

/// Factor by which the next read may grow, so that it ends within the time `left`; the last read took `took`.
fn step_growth(took: Duration, left: Duration) -> usize {
    let times = left.as_nanos() / took.as_nanos().max(1);
    usize::try_from(times.clamp(1, STEP_GROWTH_MAX)).unwrap_or(1)
}

/// Makes one short read of a search: through the index, by status, or by scanning the messages.
async fn read_step(
    sql: &Sql<'_>,
    filter: &SearchFilter,
    plan: &Plan,
    progress: SearchProgress,
    frequencies: &mut Frequencies,
) -> Result<Step> {
    if plan.has_tokens() {
        return step_by_tokens(sql, filter, plan, progress, frequencies).await;
    }
    match &plan.listed {
        Some(listed) => {
            step_by_status(sql, progress.server_id, filter, plan, listed, progress.before_id).await
        }
        None => step_by_scan(sql, filter, plan.first_id, progress).await,
    }
}

/// Scans the messages down to `first_id`.
async fn step_by_scan(
    sql: &Sql<'_>,
    filter: &SearchFilter,
    first_id: i64,
    progress: SearchProgress,
) -> Result<Step> {
    let SearchProgress { server_id, before_id, scan_max, .. } = progress;
    let rows = messages::scan_down(sql, server_id, first_id, before_id, scan_max as i64).await?;
    let before_id = match rows.last() {
        Some(last) if rows.len() == scan_max => last.id,
        _ => first_id,
    };
    Ok(Step { rows: filter_rows(rows, filter)?, before_id, is_of_blocks: false, is_cut: false })
}

async fn step_by_status(
    sql: &Sql<'_>,
    server_id: ServerId,
    filter: &SearchFilter,
    plan: &Plan,
    listed: &ListedStatuses,
    before_id: i64,
) -> Result<Step> {
    let ids = list_by_status(sql, server_id, listed, plan.first_id, before_id).await?;
    let before_id = match ids.last() {
        Some(last) if ids.len() == ROWS_PER_STEP => *last,
        _ => plan.first_id,
    };
    let rows = read_newest_first(sql, server_id, &ids).await?;
    Ok(Step { rows: filter_rows(rows, filter)?, before_id, is_of_blocks: false, is_cut: false })
}

/// Ids of messages with one of these statuses, newest first, at most `ROWS_PER_STEP`.
async fn list_by_status(
    sql: &Sql<'_>,
    server_id: ServerId,
    listed: &ListedStatuses,
    first_id: i64,
    before: i64,
) -> Result<Vec<i64>> {
    let mut ids: Vec<i64> = Vec::new();
    let limit = ROWS_PER_STEP as i64;
    for status in &listed.rare {
        let params = [server_id.0.into(), (*status).into(), first_id.into(), before.into(), limit.into()];
        for row in sql.query(statements::BY_RARE_STATUS, &params).await? {
            ids.push(row.int(0)?);
        }
    }
    let of_queue = match listed {
        ListedStatuses { is_queued: true, .. } => Some(statements::BY_QUEUE),
        ListedStatuses { is_scheduled: true, .. } if sql.is_sqlite() => Some(statements::BY_SCHEDULE_SQLITE),
        ListedStatuses { is_scheduled: true, .. } => Some(statements::BY_SCHEDULE_POSTGRES),
        _ => None,
    };
    if let Some(text) = of_queue {
        let params = [server_id.0.into(), first_id.into(), before.into(), limit.into()];
        for row in sql.query(text, &params).await? {
            ids.push(row.int(0)?);
        }
    }
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.truncate(ROWS_PER_STEP);
    Ok(ids)
}

/// Scans the messages that are newer than the next block of the index, or else looks for candidates in blocks.
async fn step_by_tokens(
    sql: &Sql<'_>,
    filter: &SearchFilter,
    plan: &Plan,
    progress: SearchProgress,
    frequencies: &mut Frequencies,
) -> Result<Step> {
    let SearchProgress { server_id, before_id, blocks_max, .. } = progress;
    // One more than wanted: a block that is being written is skipped.
    let listed = blocks::list_before(sql, server_id, before_id, blocks_max as i64 + 1).await?;
    let written: Vec<Block> = listed.into_iter().filter(|block| block.state != WRITING).collect();
    let Some(newest) = written.first() else {
        return step_by_scan(sql, filter, plan.first_id, progress).await;
    };
    if newest.last_id < before_id - 1 {
        return step_by_scan(sql, filter, plan.first_id.max(newest.last_id + 1), progress).await;
    }
    let mut blocks: Vec<Block> = vec![*newest];
    let mut weight = newest.weight();
    for block in written.iter().skip(1) {
        weight += block.weight();
        let follows = blocks.last().is_some_and(|above| block.last_id + 1 == above.first_id);
        if weight > blocks_max || !follows || block.last_id < plan.first_id {
            break;
        }
        blocks.push(*block);
    }
    let keys: Vec<i64> = blocks.iter().map(Block::key).collect();
    let found = candidates::find(sql, server_id, plan, &keys, frequencies).await?;
    read_candidates(sql, filter, plan, progress, &blocks, &found).await
}

/// Reads the candidates of consecutive blocks, newest first, until it has examined `ROWS_PER_STEP` messages.
async fn read_candidates(
    sql: &Sql<'_>,
    filter: &SearchFilter,
    plan: &Plan,
    progress: SearchProgress,
    blocks: &[Block],
    found: &HashMap<i64, Vec<u32>>,
) -> Result<Step> {
    let SearchProgress { server_id, before_id, .. } = progress;
    let mut step = Step { rows: Vec::new(), before_id, is_of_blocks: true, is_cut: false };
    let mut examined = 0;
    for group in blocks.chunks(ID_LISTS_PER_READ) {
        let with_candidates: Vec<i64> = group
            .iter()
            .filter(|block| found.contains_key(&block.key()))
            .map(|block| block.first_id)
            .collect();
        let ids_of = if with_candidates.is_empty() {
            HashMap::default()
        } else {
            blocks::read_ids(sql, server_id, &with_candidates).await?
        };
        for block in group {
            let positions = found.get(&block.key()).map(Vec::as_slice).unwrap_or_default();
            let ids = ids_of.get(&block.first_id).map(Vec::as_slice).unwrap_or_default();
            let indexed = positions.iter().filter_map(|position| ids.get(*position as usize).copied());
            let mut candidates: Vec<i64> = indexed.collect();
            if progress.finds_late && block.state == UNCHECKED {
                candidates.extend(list_late(sql, server_id, block.first_id, block.last_id).await?);
            }
            candidates.retain(|id| (plan.first_id..before_id).contains(id));
            candidates.sort_unstable_by(|a, b| b.cmp(a));
            if candidates.len() > UNLISTED_CANDIDATES_MAX
                && let Some(listed) = &plan.listed
            {
                retain_listed(sql, server_id, listed, *block, &mut candidates).await?;
            }
            let mut chunks = candidates.chunks(ROWS_PER_STEP).peekable();
            while let Some(chunk) = chunks.next() {
                step.rows.extend(filter_rows(read_newest_first(sql, server_id, chunk).await?, filter)?);
                examined += chunk.len();
                if examined >= ROWS_PER_STEP && chunks.peek().is_some() {
                    // The next read continues in the same block.
                    step.before_id = chunk[chunk.len() - 1];
                    step.is_cut = true;
                    return Ok(step);
                }
            }
            step.before_id = block.first_id.max(plan.first_id);
            if examined >= ROWS_PER_STEP {
                step.is_cut = true;
                return Ok(step);
            }
        }
    }
    Ok(step)
}

/// Drops candidates with other statuses, if the list of messages with the wanted statuses is short enough.
async fn retain_listed(
    sql: &Sql<'_>,
    server_id: ServerId,
    listed: &ListedStatuses,
    block: Block,
    candidates: &mut Vec<i64>,
) -> Result<()> {
    let ids = list_by_status(sql, server_id, listed, block.first_id, block.last_id + 1).await?;
    if ids.len() < ROWS_PER_STEP {
        let ids: HashSet<i64> = ids.into_iter().collect();
        candidates.retain(|id| ids.contains(id));
    }
    Ok(())
}

async fn read_newest_first(sql: &Sql<'_>, server_id: ServerId, ids: &[i64]) -> Result<Vec<SearchRow>> {
    let mut rows =
        if ids.is_empty() { Vec::new() } else { messages::read_by_ids(sql, server_id, ids).await? };
    rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.id));
    Ok(rows)
}

fn filter_rows(rows: Vec<SearchRow>, filter: &SearchFilter) -> Result<Vec<SearchRow>> {
    let mut found = Vec::new();
    for row in rows {
        if filter.matches(&row)? {
            found.push(row);
        }
    }
    Ok(found)
}
