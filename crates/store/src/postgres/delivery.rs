//! Delivery operations on PostgreSQL. They keep the list of claims that this node knows of (`claims.rs`) up to date.

use std::collections::HashSet;
use std::sync::Arc;

use postroad_model::Timestamp;

use super::claims::Key;
use super::finish::SettleResult;
use super::{Engine, begin, finish, queue, with_timeout, with_timeout_for};
use crate::SqlOperationWithIds;
use crate::error::StoreError;
use crate::outcomes::Outcome;
use crate::queue::waiting::EntryChange;
use crate::queue::{BeginRequest, BeginResult, ClaimSkips, ClaimedEntry};

/// Entries that `take_over` claims.
#[derive(Clone, Copy)]
enum TakeOver<'a> {
    /// These entries, if they are free or their claim belongs to an expired lease.
    These(&'a [Key]),
    /// At most this many entries that dead nodes began to send long ago.
    Abandoned(usize),
}

impl Engine {
    pub(crate) async fn claim(
        &self,
        due_by: Timestamp,
        limit: usize,
        skip: &ClaimSkips,
    ) -> Result<Vec<ClaimedEntry>, StoreError> {
        let node = self.database.node()?;
        let mut permit = self.database.claims.acquire().await;
        let known_claims = permit.start();
        let claimed = self
            .autocommit(async |client| {
                if let Some(known_claims) = known_claims {
                    queue::release_all_but(client, &node, &known_claims).await?;
                }
                queue::claim(client, &node, due_by, limit, skip).await
            })
            .await?;
        permit.confirm(claimed.iter().map(ClaimedEntry::key));
        Ok(claimed)
    }

    /// Claims these entries if they are free or their claim belongs to an expired lease.
    pub(crate) async fn adopt(&self, keys: &[Key]) -> Result<Vec<ClaimedEntry>, StoreError> {
        self.take_over(TakeOver::These(keys)).await
    }

    /// Claims entries that dead nodes began to send long ago.
    pub(crate) async fn adopt_abandoned(&self, limit: usize) -> Result<Vec<ClaimedEntry>, StoreError> {
        self.take_over(TakeOver::Abandoned(limit)).await
    }

    async fn take_over(&self, wanted: TakeOver<'_>) -> Result<Vec<ClaimedEntry>, StoreError> {
        let node = self.database.node()?;
        let mut permit = self.database.claims.acquire().await;
        let known_claims = permit.start();
        let claimed = self
            .autocommit(async |client| {
                if let Some(known_claims) = known_claims {
                    queue::release_all_but(client, &node, &known_claims).await?;
                }
                match wanted {
                    TakeOver::These(keys) => queue::adopt(client, &node, keys).await,
                    TakeOver::Abandoned(limit) => queue::adopt_abandoned(client, &node, limit).await,
                }
            })
            .await?;
        permit.confirm(claimed.iter().map(ClaimedEntry::key));
        Ok(claimed)
    }

    pub(crate) async fn release_previous_claims(&self) -> Result<u64, StoreError> {
        let node = self.database.node()?;
        self.autocommit(async |client| queue::release_previous_claims(client, &node).await).await
    }

    pub(crate) async fn begin(
        &self,
        entries: &[BeginRequest],
        now: Timestamp,
    ) -> Result<Vec<BeginResult>, StoreError> {
        let node = self.database.node()?;
        let connection = self.database.connection().await?;
        let begun = with_timeout(Box::pin(begin::begin(connection.client(), &node, entries, now))).await?;
        connection.done();
        Ok(begun)
    }

    /// Records outcomes. Fenced by the lease: a node that lost its lease cannot settle anything.
    pub(crate) async fn finish(&self, outcomes: &[Arc<Outcome>]) -> Result<Vec<bool>, StoreError> {
        if outcomes.is_empty() {
            return Ok(Vec::new());
        }
        let node = self.database.node()?;
        // Event ids are new, so their weekly partition may be missing. Transcripts belong to the week of their message.
        let next_id = node.ids.next();
        let with_transcript = outcomes.iter().filter(|outcome| outcome.transcript.is_some());
        let oldest = with_transcript.map(|outcome| outcome.message_id.0).min().unwrap_or(next_id);
        self.database.partitions.ensure(&self.database.pool, oldest.min(next_id), next_id).await?;
        let bytes = outcomes.iter().map(|outcome| outcome.transcript.as_ref().map_or(0, String::len)).sum();
        let connection = self.database.connection().await?;
        let settled =
            with_timeout_for(bytes, Box::pin(finish::finish(connection.client(), &node, outcomes))).await?;
        connection.done();
        let claimed_key = |(outcome, settled): (&Arc<Outcome>, &SettleResult)| {
            let is_still_claimed = match settled {
                SettleResult::Recorded => outcome.keep_claim && outcome.delivery.status.is_queued(),
                SettleResult::NotRecorded => false,
                SettleResult::OtherAttempt => true,
            };
            is_still_claimed.then(|| outcome.key())
        };
        let still_claimed: HashSet<Key> = outcomes.iter().zip(&settled).filter_map(claimed_key).collect();
        let ended: Vec<Key> =
            outcomes.iter().map(|outcome| outcome.key()).filter(|key| !still_claimed.contains(key)).collect();
        self.database.claims.forget(&ended);
        Ok(settled.into_iter().map(|settled| settled == SettleResult::Recorded).collect())
    }

    pub(crate) async fn release(&self, keys: Vec<Key>) -> Result<(), StoreError> {
        let node = self.database.node()?;
        self.autocommit(async |client| queue::release(client, &node, &keys).await).await?;
        self.database.claims.forget(&keys);
        Ok(())
    }

    pub(crate) async fn unbegin(&self, key: Key) -> Result<(), StoreError> {
        let node = self.database.node()?;
        self.autocommit(async |client| queue::unbegin(client, &node, key).await).await
    }

    /// Releases some claims of dead nodes; returns how many.
    pub(crate) async fn reap(&self, limit: usize) -> Result<u64, StoreError> {
        self.autocommit(async |client| queue::reap(client, limit).await).await
    }

    /// Changes a message that is not being sent. If the change affects the message's queue entry, this node's claim on
    /// the entry ends.
    pub(crate) async fn change_waiting<T: Send + 'static>(
        &self,
        key: Key,
        operation: SqlOperationWithIds<(T, EntryChange)>,
    ) -> Result<(T, EntryChange), StoreError> {
        let (result, entry) = self.write_with_ids(operation).await?;
        if entry != EntryChange::Unchanged {
            self.database.claims.forget(&[key]);
        }
        Ok((result, entry))
    }
}
