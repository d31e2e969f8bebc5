//! Admin commands for pools of source addresses, and for the servers that use them.

use std::net::IpAddr;

use postroad_boxed_futures::boxed_futures;
use postroad_model::Timestamp;
use postroad_store::{Pool, SourceDay};
use serde_json::{Value, json};

use super::servers::update_of_settings;
use super::{AdminError, error_naming, whole_list};
use crate::access::Operation;
use crate::accounts::{AccountRefusal, Requester, ServerUpdateRequest};
use crate::ip_pools::{
    AddressChange, AddressView, NewAddress, NewPoolRequest, PoolFilter, PoolView, WarmUpChange,
};
use crate::{App, ServerChangeRequest};

/// Maximum number of pools, or of entries of an address's history, that one list shows.
const LISTED_MAX: usize = 10_000;

#[boxed_futures]
impl App {
    /// Creates a pool; `account` is the account that the pool is reserved for.
    pub async fn create_pool(
        &self,
        name: String,
        shared: bool,
        account: Option<&str>,
    ) -> Result<Value, AdminError> {
        let account = match account {
            Some(account) => Some(self.find_account_id(account).await?),
            None => None,
        };
        let object = format!("the pool `{name}`");
        let request = NewPoolRequest { name, shared, account, idempotency_key: None };
        let created = self.create_ip_pool(&Requester::command_line(), request).await;
        Ok(pool_json(&created.map_err(error_naming(object))?.value))
    }

    pub async fn list_pools(&self) -> Result<Value, AdminError> {
        let by = Requester::command_line();
        let found = self.list_ip_pools(&by, PoolFilter::default(), None, LISTED_MAX).await?;
        Ok(whole_list(found, "pools", "ip_pools/list")?.iter().map(pool_json).collect())
    }

    pub async fn show_pool(&self, name: &str) -> Result<Value, AdminError> {
        let pool = self.find_pool(name).await?;
        let found = self.find_ip_pool(&Requester::command_line(), Operation::IpPoolsGet, pool.id).await;
        Ok(pool_json(&found.map_err(error_naming(format!("the pool `{name}`")))?))
    }

    pub async fn delete_pool(&self, name: &str) -> Result<Value, AdminError> {
        let pool = self.find_pool(name).await?;
        let deleted = self.delete_ip_pool(&Requester::command_line(), pool.id).await;
        deleted.map_err(error_naming(format!("the pool `{name}`")))?;
        Ok(json!({ "deleted": name }))
    }

    pub async fn add_address(
        &self,
        pool: &str,
        address: IpAddr,
        helo: String,
        weight: u32,
        warm_up: bool,
    ) -> Result<Value, AdminError> {
        let pool = self.find_pool(pool).await?.id;
        let new = NewAddress { pool, address, helo, weight, warm_up, idempotency_key: None };
        let added = self.add_pool_address(&Requester::command_line(), new).await;
        Ok(pool_json(&added.map_err(error_for_address(address))?.value))
    }

    pub async fn update_address(
        &self,
        address: IpAddr,
        helo: Option<String>,
        weight: Option<u32>,
    ) -> Result<Value, AdminError> {
        let change = AddressChange { if_version: None, helo, weight };
        let updated = self.update_pool_address(&Requester::command_line(), address, change).await;
        Ok(pool_json(&updated.map_err(error_for_address(address))?))
    }

    pub async fn remove_address(&self, address: IpAddr) -> Result<Value, AdminError> {
        let removed = self.remove_pool_address(&Requester::command_line(), address).await;
        removed.map_err(error_for_address(address))?;
        Ok(json!({ "removed": address }))
    }

    pub async fn set_warm_up(&self, address: IpAddr, change: WarmUpChange) -> Result<Value, AdminError> {
        let changed = self.change_warm_up(&Requester::command_line(), address, change).await;
        Ok(pool_json(&changed.map_err(error_for_address(address))?))
    }

    /// Numbers of messages that an address sent per day and receiver group, by outcome; newest first.
    pub async fn address_history(&self, address: IpAddr) -> Result<Value, AdminError> {
        let days = self.pool_address_history(&Requester::command_line(), address, None, LISTED_MAX).await;
        let day_json = |day: &SourceDay| {
            json!({
                "day": day.day.to_rfc3339().split('T').next(),
                "provider": day.provider,
                "sent": day.counts.sent,
                "bounced": day.counts.bounced,
                "complained": day.counts.complained,
            })
        };
        Ok(days.map_err(error_for_address(address))?.0.iter().map(day_json).collect())
    }

    pub async fn set_server_pool(&self, server: &str, pool: Option<&str>) -> Result<Value, AdminError> {
        let server = self.find_server(server).await?;
        let pool_id = match pool {
            Some(name) => Some(self.find_pool(name).await?.id),
            None => None,
        };
        let request = ServerUpdateRequest {
            pool: pool_id.into(),
            ..update_of_settings(ServerChangeRequest::default())
        };
        self.update_server_as(&Requester::command_line(), server.id, request).await?;
        Ok(json!({ "server": server.name, "pool": pool }))
    }

    /// Names of all pools, in alphabetical order.
    pub async fn list_pool_names(&self) -> Result<Vec<String>, AdminError> {
        let mut names: Vec<String> =
            self.inner.store.list_pools().await?.into_iter().map(|pool| pool.name).collect();
        names.sort_unstable();
        Ok(names)
    }

    pub(super) async fn find_pool(&self, name: &str) -> Result<Pool, AdminError> {
        let pools = self.inner.store.list_pools().await?;
        pools.into_iter().find(|pool| pool.name == name).ok_or_else(|| {
            AdminError::refused(format!(
                "there is no pool `{name}`; `postroad admin pool create {name}` creates it"
            ))
        })
    }
}

/// Turns a refusal into an error. The error names the address if it is in no pool, or exists already.
fn error_for_address(address: IpAddr) -> impl FnOnce(AccountRefusal) -> AdminError {
    move |refusal| match refusal {
        AccountRefusal::NotFound(_) => AdminError::refused(format!(
            "{address} is in no pool; `postroad admin pool list` shows the addresses"
        )),
        AccountRefusal::Exists(_) => AdminError::refused(format!("the address {address} exists already")),
        other => other.into(),
    }
}

fn pool_json(view: &PoolView) -> Value {
    let time = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
    let addresses: Vec<Value> = view
        .addresses
        .iter()
        .map(|AddressView { source, warm_up, warm_up_day, .. }| {
            json!({
                "address": source.address,
                "helo": source.helo,
                "weight": source.weight,
                "version": source.version,
                "created_at": source.created_at.to_rfc3339(),
                "warm_up": warm_up.as_str(),
                "warm_up_day": warm_up_day,
                "warm_up_started_at": time(source.warmup_started_at),
                "warm_up_paused_reason": source.warmup_paused_reason,
                "sent_today": source.sent_today,
                "bounced_today": source.bounced_today,
                "complained_today": source.complained_today,
            })
        })
        .collect();
    let pool = &view.pool;
    json!({
        "id": pool.id,
        "name": pool.name,
        "shared": pool.shared,
        "account": pool.account_id,
        "created_at": pool.created_at.to_rfc3339(),
        "addresses": addresses,
    })
}
