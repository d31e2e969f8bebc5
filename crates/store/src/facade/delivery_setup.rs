//! What the delivery engine goes by: pools, source addresses, gates.

use crate::verbs::delivery_setup;
use crate::{Result, Store};

impl Store {
    /// Nodes that share the database, by their leases.
    pub async fn live_nodes(&self) -> Result<u32> {
        self.read(move |sql| Box::pin(delivery_setup::count_live_nodes(sql))).await
    }
}
