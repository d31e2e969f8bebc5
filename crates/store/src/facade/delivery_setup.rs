//! What the delivery engine goes by: pools, source addresses, gates.

use postroad_model::{PoolId, SourceId, Timestamp};

use crate::records::{DeliverySetup, NewSource, Pool, Source, SourceDay, WarmupPause};
use crate::verbs::{delivery_setup, pools};
use crate::{Result, Store};

impl Store {
    /// Servers, pools, sources, gates and the number of nodes, as they are now.
    pub async fn delivery_setup(&self) -> Result<DeliverySetup> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(delivery_setup::read(sql, now))).await
    }

    /// Nodes that share the database, by their leases.
    pub async fn live_nodes(&self) -> Result<u32> {
        self.read(move |sql| Box::pin(delivery_setup::count_live_nodes(sql))).await
    }

    /// `Conflict` if the name is taken, or the pool is to be the shared one and there is one.
    pub async fn create_pool(&self, name: String, shared: bool) -> Result<Pool> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(pools::create(sql, name, shared, now))).await
    }

    pub async fn list_pools(&self) -> Result<Vec<Pool>> {
        self.read(move |sql| Box::pin(pools::list(sql))).await
    }

    /// `InUse` while servers send from it or it has sources.
    pub async fn delete_pool(&self, id: PoolId) -> Result<()> {
        self.change(move |sql| Box::pin(pools::delete(sql, id))).await
    }

    /// `NotFound` without the pool, `Conflict` if the address is in a pool already.
    pub async fn add_source(&self, new: NewSource) -> Result<Source> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(pools::add_source(sql, new, now))).await
    }

    pub async fn list_sources(&self) -> Result<Vec<Source>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(pools::list_sources(sql, now))).await
    }

    pub async fn remove_source(&self, id: SourceId) -> Result<()> {
        self.change(move |sql| Box::pin(pools::remove_source(sql, id))).await
    }

    /// Begins a warm-up anew; `started_at` of `None` says that the address is warm.
    pub async fn set_source_warmup(&self, id: SourceId, started_at: Option<Timestamp>) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(pools::set_warmup(sql, id, started_at, now))).await
    }

    /// Goes on with a paused warm-up on the day of its plan on which it was paused. What was counted before does not
    /// pause it again.
    pub async fn resume_warmup(&self, id: SourceId) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(pools::resume_warmup(sql, id, now))).await
    }

    /// Pauses a warm-up that is running, and tells the servers that send from there. `false` if somebody was faster.
    pub async fn pause_warmup(&self, pause: WarmupPause) -> Result<bool> {
        let now = self.clock.now();
        let paused = self
            .write_with_ids(move |sql, ids| {
                Box::pin(async move { pools::pause_warmup(sql, &ids, &pause, now).await })
            })
            .await?;
        self.note_change();
        self.bells.ring_everywhere();
        Ok(paused)
    }

    /// What a source did, day by day, in time order.
    pub async fn source_days(&self, id: SourceId) -> Result<Vec<SourceDay>> {
        self.read(move |sql| Box::pin(pools::list_days(sql, id))).await
    }
}
