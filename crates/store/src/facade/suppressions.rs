//! Suppressions: the addresses that get no more mail from a server.

use postroad_model::ServerId;

use crate::records::{AddedSuppression, NewSuppression, Suppression, SuppressionCursor, SuppressionFilter};
use crate::verbs::suppressions;
use crate::{Result, Store};

/// Rows that one transaction takes: SQLite's one writer is kept from everybody's mail for a few milliseconds.
const AT_ONCE: usize = 250;

impl Store {
    /// Suppresses an address; one that is suppressed already keeps its older entry, unless that is over or the new
    /// one lasts longer. Returns the entry that stands.
    pub async fn add_suppression(&self, server_id: ServerId, new: NewSuppression) -> Result<Suppression> {
        let added = self.add_suppressions(server_id, vec![new]).await?.pop();
        added.map(|added| added.standing).ok_or(crate::StoreError::NotFound)
    }

    /// The same for many, in the order given. Not all or nothing: after a failure some may stand, and adding them
    /// again does no harm.
    pub async fn add_suppressions(
        &self,
        server_id: ServerId,
        mut new: Vec<NewSuppression>,
    ) -> Result<Vec<AddedSuppression>> {
        let mut added = Vec::with_capacity(new.len());
        while !new.is_empty() {
            let rest = new.split_off(new.len().min(AT_ONCE));
            let some = std::mem::replace(&mut new, rest);
            let now = self.clock.now();
            added
                .extend(self.write(move |sql| Box::pin(suppressions::add(sql, server_id, some, now))).await?);
            self.last_suppressed.note([server_id], self.clock.now());
        }
        Ok(added)
    }

    /// Whether it was suppressed.
    pub async fn remove_suppression(&self, server_id: ServerId, address: String) -> Result<bool> {
        Ok(self.remove_suppressions(server_id, vec![address]).await?.contains(&true))
    }

    /// Whether each was suppressed, in the order given; not all or nothing.
    pub async fn remove_suppressions(
        &self,
        server_id: ServerId,
        mut addresses: Vec<String>,
    ) -> Result<Vec<bool>> {
        let mut removed = Vec::with_capacity(addresses.len());
        while !addresses.is_empty() {
            let rest = addresses.split_off(addresses.len().min(AT_ONCE));
            let some = std::mem::replace(&mut addresses, rest);
            let now = self.clock.now();
            removed.extend(
                self.write(move |sql| Box::pin(suppressions::remove(sql, server_id, some, now))).await?,
            );
        }
        Ok(removed)
    }

    /// Unless it is over.
    pub async fn find_suppression(
        &self,
        server_id: ServerId,
        address: String,
    ) -> Result<Option<Suppression>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(suppressions::find(sql, server_id, address, now))).await
    }

    /// Newest first, beginning after the entry `after`; without those that are over.
    pub async fn list_suppressions(
        &self,
        server_id: ServerId,
        filter: SuppressionFilter,
        after: Option<SuppressionCursor>,
        limit: usize,
    ) -> Result<Vec<Suppression>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(suppressions::list(sql, server_id, filter, after, limit as i64, now)))
            .await
    }

    /// In the order of their addresses, beginning after the address `after`; without those that are over.
    pub async fn list_suppressions_by_address(
        &self,
        server_id: ServerId,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<Suppression>> {
        let now = self.clock.now();
        self.read(move |sql| {
            Box::pin(suppressions::list_by_address(sql, server_id, after, limit as i64, now))
        })
        .await
    }

    /// Removes suppressions that are over, at most `limit`; returns how many.
    pub async fn remove_ended_suppressions(&self, limit: usize) -> Result<u64> {
        let now = self.clock.now();
        // Mostly there are none, and the writer need not be asked.
        if !self.read(move |sql| Box::pin(suppressions::has_ended(sql, now))).await? {
            return Ok(0);
        }
        self.write(move |sql| Box::pin(suppressions::remove_ended(sql, now, limit as i64))).await
    }
}
