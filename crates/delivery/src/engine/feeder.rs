//! Feeds the schedule: claims messages that are due within the horizon, re-reads the setup, and releases claims of dead
//! nodes. Exchanges pacing notes (stored estimates about receivers) with other nodes. After a failure it tries again in
//! the next round.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use postroad_model::{ServerId, Timestamp};
use postroad_store::{
    ClaimSkips, ClaimedEntry, DeliverySetup, SetupMark, Source, Store, StoreError, WarmupPause,
};
use tokio::sync::watch;
use tokio::time::Instant;

use super::resolve::HORIZON;
use super::{EngineShared, recover};
use crate::schedule::Schedule;
use crate::schedule::warm_up::pause_reason;

const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// A scheduled message may be claimed up to this much late, so that messages due shortly after each other are claimed
/// together.
const SCHEDULED_TOGETHER: Duration = Duration::from_millis(50);
/// Maximum number of messages of one claim.
const CLAIM_ENTRIES_MAX: usize = 1_000;
/// One claim takes at most a quarter of the room that is left in the schedule.
const CLAIM_ROOM_DIVISOR: usize = 4;
/// While a lane has this many messages in memory, no more messages to its domain are claimed.
const LANE_ENTRIES_MAX: usize = 50_000;
/// Changes of the setup that follow each other this quickly are read together.
const CHANGES_TOGETHER: Duration = Duration::from_millis(20);
/// Number of rounds between reads of changes by other nodes. A round is `ROUND_INTERVAL`; the intervals below count
/// rounds too.
const SETUP_EVERY_ROUNDS: u32 = 2;
/// The whole setup is read again this often, whether or not it changed: a database may be replaced by another.
const WHOLE_SETUP_EVERY_ROUNDS: u32 = 60;
/// Claims of dead nodes are released this often, at most `REAP_BATCHES_MAX` batches at a time.
const REAP_EVERY_ROUNDS: u32 = 10;
const REAP_BATCHES_MAX: usize = 20;
/// Maximum number of begun attempts of dead nodes that are adopted at a time.
const ABANDONED_READ_MAX: usize = 500;
/// Pacing notes are exchanged, and unused state and ended gates removed, this often.
const SWEEP_EVERY_ROUNDS: u32 = 60;
/// Estimates about receivers are kept for this long.
const NOTES_AGE_MAX: Duration = Duration::from_hours(7 * 24);
/// Maximum number of pacing notes read at a time.
const NOTES_READ_MAX: usize = 50_000;
/// Each read overlaps the last one by this much, because other nodes may store notes with earlier times.
const NOTES_OVERLAP: Duration = Duration::from_mins(5);
/// Maximum number of servers that get an event about a paused warm-up; limited, because one transaction writes all
/// these events.
const NOTIFIED_SERVERS_MAX: usize = 200;

pub(crate) struct Feeder {
    pub(crate) shared: Arc<EngineShared>,
    pub(crate) changes: watch::Receiver<u64>,
    pub(crate) queue_changes: watch::Receiver<u64>,
    /// Messages that dead nodes had begun to send, and that could not be read from the store so far. The next `reap`
    /// tries again.
    pub(crate) abandoned: Vec<ClaimedEntry>,
    /// Start of the next read of pacing notes; `None` before the first read.
    pub(crate) notes_since: Option<Timestamp>,
}

impl Feeder {
    /// Runs as long as the engine does.
    pub(crate) async fn run(mut self) {
        let mut round: u32 = 0;
        let mut next_round = Instant::now();
        let mut next_setup_read = next_round;
        loop {
            let scheduled = self.next_scheduled().await;
            tokio::select! {
                () = tokio::time::sleep_until(next_round) => {}
                () = tokio::time::sleep_until(scheduled.unwrap_or(next_round)), if scheduled.is_some_and(|at| at < next_round) => {
                    if let Err(error) = self.read_queue().await {
                        tracing::warn!(%error, "reading the queue failed; retrying");
                    }
                    continue;
                }
                Ok(()) = self.changes.changed() => {
                    tokio::time::sleep_until(next_setup_read).await;
                    if let Err(error) = self.follow_change().await {
                        tracing::warn!(%error, "reading the setup failed; retrying");
                    }
                    next_setup_read = Instant::now() + CHANGES_TOGETHER;
                    continue;
                }
                // Callers may requeue messages often, so only the queue is read.
                Ok(()) = self.queue_changes.changed() => {
                    if let Err(error) = self.read_queue().await {
                        tracing::warn!(%error, "reading the queue failed; retrying");
                    }
                    continue;
                }
            }
            if let Err(error) = self.run_round(round).await {
                tracing::warn!(%error, "a round of the delivery feeder failed; due messages may be claimed late; the next round begins in 1 s");
            }
            round = round.wrapping_add(1);
            next_round = Instant::now() + ROUND_INTERVAL;
        }
    }

    /// When to claim the next scheduled message: once it is due, and `SCHEDULED_TOGETHER` from now at the earliest. A
    /// message that is already due waits for the next round.
    async fn next_scheduled(&self) -> Option<Instant> {
        let due_at = self.shared.store.next_scheduled().await.ok()??;
        let now = self.shared.clock.now();
        (due_at > now).then(|| Instant::now() + due_at.since(now).max(SCHEDULED_TOGETHER))
    }

    /// Applies changes that were made in this process.
    async fn follow_change(&mut self) -> Result<(), StoreError> {
        self.changes.mark_unchanged();
        self.shared.preparer.forget_domains();
        read_setup_changes(&self.shared).await?;
        self.read_queue().await
    }

    async fn run_round(&mut self, round: u32) -> Result<(), StoreError> {
        if round.is_multiple_of(WHOLE_SETUP_EVERY_ROUNDS) {
            read_setup(&self.shared).await?;
        } else if round.is_multiple_of(SETUP_EVERY_ROUNDS) {
            read_setup_changes(&self.shared).await?;
        }
        if round.is_multiple_of(REAP_EVERY_ROUNDS) {
            self.reap().await?;
        }
        if round.is_multiple_of(SWEEP_EVERY_ROUNDS) {
            self.exchange_notes().await?;
            self.shared.with(Schedule::sweep);
            self.shared.store.purge_gates().await?;
        }
        self.read_queue().await
    }

    async fn read_queue(&self) -> Result<(), StoreError> {
        self.shared.release_postponed().await?;
        self.claim().await
    }

    /// Stores new pacing notes, and reads the notes of other nodes.
    async fn exchange_notes(&mut self) -> Result<(), StoreError> {
        let shared = &self.shared;
        let begun_at = shared.clock.now();
        shared.save_pacing_notes().await?;
        let since = self.notes_since.unwrap_or_else(|| begun_at.minus(NOTES_AGE_MAX));
        let notes = shared.store.list_pacing_notes(since, NOTES_READ_MAX).await?;
        shared.with(|schedule, now| schedule.remember(notes, now));
        self.notes_since = Some(begun_at.minus(NOTES_OVERLAP));
        shared.store.purge_pacing_notes(begun_at.minus(NOTES_AGE_MAX)).await?;
        Ok(())
    }

    /// Releases some claims of dead nodes and records the attempts that they began. A node may have left a million
    /// claims, and the next round must not wait for all.
    async fn reap(&mut self) -> Result<(), StoreError> {
        for _ in 0..REAP_BATCHES_MAX {
            if self.shared.store.reap().await? < Store::REAPED_CLAIMS_MAX as u64 {
                break;
            }
        }
        if self.abandoned.is_empty() {
            self.abandoned = self.shared.store.adopt_abandoned(ABANDONED_READ_MAX).await?;
        }
        let abandoned = std::mem::take(&mut self.abandoned);
        self.abandoned = recover::settle_abandoned(&self.shared, abandoned).await;
        Ok(())
    }

    async fn claim(&self) -> Result<(), StoreError> {
        let shared = &self.shared;
        loop {
            let (room, domains, servers) = shared.query(|schedule, _| {
                (schedule.room_left(), schedule.full_domains(LANE_ENTRIES_MAX), schedule.full_servers())
            });
            if room == 0 || shared.is_stopping() {
                return Ok(());
            }
            // Each claim takes only part of the room. The next claim leaves out servers that have enough, so that no
            // server fills the whole room.
            let limit = room.div_ceil(CLAIM_ROOM_DIVISOR).min(CLAIM_ENTRIES_MAX);
            let due_by = shared.clock.now().plus(HORIZON);
            let skip = ClaimSkips { domains, servers: servers.clone() };
            let claimed = shared.store.claim(due_by, limit, skip).await?;
            let count = claimed.len();
            if shared.is_stopping() {
                return shared.store.release_claims(claimed.iter().map(ClaimedEntry::key).collect()).await;
            }
            shared.add_claimed(claimed);
            if count < limit {
                shared.with(|schedule, _| schedule.on_caught_up_with_store(&servers));
                return Ok(());
            }
        }
    }
}

/// Reads servers, pools, addresses and gates.
pub(crate) async fn read_setup(shared: &Arc<EngineShared>) -> Result<(), StoreError> {
    let mut mark = shared.setup_mark.lock().await;
    *mark = None;
    read_setup_since(shared, &mut mark).await
}

/// Like `read_setup`, but reads only the servers that changed since the last read.
async fn read_setup_changes(shared: &Arc<EngineShared>) -> Result<(), StoreError> {
    let mut mark = shared.setup_mark.lock().await;
    read_setup_since(shared, &mut mark).await
}

/// Reads the changes made in this process, unless they are already in effect. Concurrent callers share a read.
pub(crate) async fn apply_changes(shared: &Arc<EngineShared>) -> Result<(), StoreError> {
    let wanted = *shared.store.changes().borrow();
    let is_in_effect = || shared.changes_in_effect.load(Ordering::Acquire) >= wanted;
    if is_in_effect() {
        return Ok(());
    }
    let mut mark = shared.setup_mark.lock().await;
    if is_in_effect() { Ok(()) } else { read_setup_since(shared, &mut mark).await }
}

/// The caller holds the lock of the mark. Otherwise, of two concurrent reads, the older result could be applied last.
async fn read_setup_since(
    shared: &Arc<EngineShared>,
    mark: &mut Option<SetupMark>,
) -> Result<(), StoreError> {
    let changes = *shared.store.changes().borrow();
    let setup = shared.store.delivery_setup(*mark).await?;
    pause_bad_warm_ups(shared, &setup).await?;
    shared.with(|schedule, now| schedule.configure(&setup, now));
    *mark = Some(setup.mark);
    shared.changes_in_effect.store(changes, Ordering::Release);
    Ok(())
}

async fn pause_bad_warm_ups(shared: &Arc<EngineShared>, setup: &DeliverySetup) -> Result<(), StoreError> {
    for source in &setup.sources {
        // An address that has completed its plan is warm and is never paused.
        let is_over = shared.settings.warm_up.quota(source, shared.clock.now()).is_none();
        if is_over || source.warmup_paused_reason.is_some() {
            continue;
        }
        if let Some(reason) = pause_reason(source.warmup_counts) {
            let servers = shared.store.list_servers_of_pool(source.pool_id, NOTIFIED_SERVERS_MAX).await?;
            shared.store.pause_warmup(warm_up_pause(setup, source, servers, reason.clone())).await?;
            tracing::warn!(source = %source.address, reason, "warm-up paused");
        }
    }
    Ok(())
}

fn warm_up_pause(
    setup: &DeliverySetup,
    source: &Source,
    servers: Vec<ServerId>,
    reason: String,
) -> WarmupPause {
    let pool = setup.pools.iter().find(|pool| pool.id == source.pool_id);
    WarmupPause {
        source_id: source.id,
        reason,
        pool: pool.map(|pool| pool.name.clone()).unwrap_or_default(),
        servers,
    }
}
