//! What the delivery engine goes by: pools, source addresses, gates.

use crate::records::DeliverySetup;
use crate::verbs::delivery_setup;
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
}
