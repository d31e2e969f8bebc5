//! Admin commands for pools of source addresses, and for the servers that use them.

use std::net::IpAddr;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainName, PoolId};
use postroad_store::{AuditSubject, NewSource, Pool, Source, SourceDay, StoreError};
use serde_json::{Value, json};

use super::{AdminError, check_name, taken};
use crate::App;
use crate::access::Operation;

#[boxed_futures]
impl App {
    pub async fn create_pool(&self, name: String, shared: bool) -> Result<Value, AdminError> {
        let name = check_name(&name)?;
        let what = format!("the pool `{name}`");
        let store = self.by_operator(Operation::IpPoolsCreate, AuditSubject::NewPool(name.clone()));
        let pool = store.create_pool(name, shared).await.map_err(taken(what))?;
        Ok(self.shown_pool(&pool, &[]))
    }

    pub async fn list_pools(&self) -> Result<Value, AdminError> {
        let setup = self.inner.store.delivery_setup().await?;
        Ok(setup.pools.iter().map(|pool| self.shown_pool(pool, &setup.sources)).collect())
    }

    pub async fn delete_pool(&self, name: &str) -> Result<Value, AdminError> {
        let pool = self.find_pool(name).await?;
        let store = self.by_operator(Operation::IpPoolsDelete, AuditSubject::Pool(pool.id));
        store.delete_pool(pool.id).await.map_err(|error| match error {
            StoreError::InUse => AdminError::refused(format!(
                "the pool `{name}` is in use: remove its addresses and give its servers another pool first"
            )),
            other => other.into(),
        })?;
        Ok(json!({ "deleted": name }))
    }

    pub async fn add_address(
        &self,
        pool: &str,
        address: IpAddr,
        helo: &str,
        weight: u32,
        warm_up: bool,
    ) -> Result<Value, AdminError> {
        let helo = DomainName::parse(helo).map_err(|e| AdminError::refused(format!("--helo {helo}: {e}")))?;
        let pool = self.find_pool(pool).await?;
        let new = NewSource {
            pool_id: pool.id,
            address,
            helo,
            weight,
            warmup_started_at: warm_up.then(|| self.inner.clock.now()),
        };
        let store = self.by_operator(Operation::IpPoolsAddAddress, AuditSubject::NewSource(address));
        store.add_source(new).await.map_err(taken(format!("the address {address}")))?;
        self.pool_by_id(pool.id).await
    }

    pub async fn remove_address(&self, address: IpAddr) -> Result<Value, AdminError> {
        let source = self.find_source(address).await?;
        let store = self.by_operator(Operation::IpPoolsRemoveAddress, AuditSubject::Source(source.id));
        store.remove_source(source.id).await?;
        Ok(json!({ "removed": address }))
    }

    /// Restarts a warm-up, continues a paused one, or ends it.
    pub async fn set_warm_up(&self, address: IpAddr, state: WarmUpState) -> Result<Value, AdminError> {
        let source = self.find_source(address).await?;
        let store = self.by_operator(Operation::IpPoolsWarmUp, AuditSubject::Source(source.id));
        match state {
            WarmUpState::Start => store.set_source_warmup(source.id, Some(self.inner.clock.now())).await?,
            WarmUpState::Resume => store.resume_warmup(source.id).await?,
            WarmUpState::End => store.set_source_warmup(source.id, None).await?,
        }
        self.pool_by_id(source.pool_id).await
    }

    /// Messages that an address sent per day and receiver group, with their outcomes.
    pub async fn address_history(&self, address: IpAddr) -> Result<Value, AdminError> {
        let source = self.find_source(address).await?;
        let days = self.inner.store.source_days(source.id).await?;
        let shown = |day: &SourceDay| {
            json!({
                "day": day.day.to_rfc3339().split('T').next(),
                "provider": day.provider,
                "sent": day.counts.sent,
                "bounced": day.counts.bounced,
                "complained": day.counts.complained,
            })
        };
        Ok(days.iter().map(shown).collect())
    }

    pub async fn set_server_pool(&self, server: &str, pool: Option<&str>) -> Result<Value, AdminError> {
        let server = self.find_server(server).await?;
        let pool_id = match pool {
            Some(name) => Some(self.find_pool(name).await?.id),
            None => None,
        };
        self.changing_server(server.id).set_server_pool(server.id, pool_id).await?;
        Ok(json!({ "server": server.name, "pool": pool }))
    }

    /// Names of all pools, in order.
    pub async fn list_pool_names(&self) -> Result<Vec<String>, AdminError> {
        let mut names: Vec<String> =
            self.inner.store.list_pools().await?.into_iter().map(|pool| pool.name).collect();
        names.sort_unstable();
        Ok(names)
    }

    async fn find_pool(&self, name: &str) -> Result<Pool, AdminError> {
        let pools = self.inner.store.list_pools().await?;
        pools.into_iter().find(|pool| pool.name == name).ok_or_else(|| {
            AdminError::refused(format!(
                "there is no pool `{name}`; `postroad admin pool create {name}` makes it"
            ))
        })
    }

    async fn pool_by_id(&self, id: PoolId) -> Result<Value, AdminError> {
        let setup = self.inner.store.delivery_setup().await?;
        let pool = setup.pools.iter().find(|pool| pool.id == id);
        Ok(pool.map_or(Value::Null, |pool| self.shown_pool(pool, &setup.sources)))
    }

    async fn find_source(&self, address: IpAddr) -> Result<Source, AdminError> {
        let setup = self.inner.store.delivery_setup().await?;
        setup.sources.into_iter().find(|source| source.address == address).ok_or_else(|| {
            AdminError::refused(format!(
                "{address} is in no pool; `postroad admin pool list` shows the addresses"
            ))
        })
    }
}

/// Change of an address's warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUpState {
    Start,
    Resume,
    End,
}

impl App {
    fn shown_pool(&self, pool: &Pool, sources: &[Source]) -> Value {
        let now = self.inner.clock.now();
        let is_over =
            |source: &Source| source.warmup_day(now).is_some_and(|day| day >= self.inner.warm_up_days);
        let addresses: Vec<Value> = sources
            .iter()
            .filter(|source| source.pool_id == pool.id)
            .map(|source| {
                json!({
                    "address": source.address,
                    "helo": source.helo,
                    "weight": source.weight,
                    "warm_up": match (&source.warmup_started_at, &source.warmup_paused_reason) {
                        (None, _) => "none",
                        (Some(_), None) if is_over(source) => "done",
                        (Some(_), None) => "running",
                        (Some(_), Some(_)) => "paused",
                    },
                    "warm_up_started_at": source.warmup_started_at.map(postroad_model::Timestamp::to_rfc3339),
                    "warm_up_paused_reason": source.warmup_paused_reason,
                    "sent_today": source.sent_today,
                    "bounced_today": source.bounced_today,
                    "complained_today": source.complained_today,
                })
            })
            .collect();
        json!({ "id": pool.id, "name": pool.name, "shared": pool.shared, "addresses": addresses })
    }
}
