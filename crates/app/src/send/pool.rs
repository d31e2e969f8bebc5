//! Pools that a send may name: the pool of its server and the shared pool. Names of other pools are reported as
//! unknown.

use std::sync::Arc;

use postroad_model::{PoolId, ServerId};
use postroad_store::StoreError;

use crate::App;

#[derive(Debug, Clone)]
pub(crate) struct UsablePool {
    name: String,
    id: PoolId,
}

impl App {
    /// `None` if there is no pool of this name that the server may use.
    pub(super) async fn find_pool_for(
        &self,
        server_id: ServerId,
        name: &str,
    ) -> Result<Option<PoolId>, StoreError> {
        let known = match self.inner.pools.find(&server_id) {
            Some(known) => known,
            None => self.read_pools(server_id).await?,
        };
        Ok(known.iter().find(|pool| pool.name == name).map(|pool| pool.id))
    }

    async fn read_pools(&self, server_id: ServerId) -> Result<Arc<[UsablePool]>, StoreError> {
        let start = self.inner.pools.start_read();
        let store = &self.inner.store;
        let own = store.find_server(server_id).await?.and_then(|server| server.pool_id);
        let usable: Arc<[UsablePool]> = store
            .list_pools()
            .await?
            .into_iter()
            .filter(|pool| pool.shared || own == Some(pool.id))
            .map(|pool| UsablePool { name: pool.name, id: pool.id })
            .collect();
        self.inner.pools.put(server_id, Arc::clone(&usable), start);
        Ok(usable)
    }
}
