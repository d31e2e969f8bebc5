//! Suppressions: the addresses that get no more mail from a server.

use postroad_model::ServerId;

use crate::records::{NewSuppression, Suppression};
use crate::verbs::suppressions;
use crate::{Result, Store};

impl Store {
    /// Suppresses an address; one that is suppressed already keeps its older entry, unless that is over. Returns the
    /// entry that stands.
    pub async fn add_suppression(&self, server_id: ServerId, new: NewSuppression) -> Result<Suppression> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(suppressions::add(sql, server_id, new, now))).await
    }

    /// Whether it was suppressed.
    pub async fn remove_suppression(&self, server_id: ServerId, address: String) -> Result<bool> {
        self.write(move |sql| Box::pin(suppressions::remove(sql, server_id, address))).await
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

    /// In the order of their addresses, beginning after the address `after`; without those that are over.
    pub async fn list_suppressions(
        &self,
        server_id: ServerId,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<Suppression>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(suppressions::list(sql, server_id, after, limit as i64, now))).await
    }
}
