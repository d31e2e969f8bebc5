//! A pool as answers show it.

use crate::documented::ToSchema;
use postroad_app::ip_pools::{AddressView, PoolView};
use postroad_model::Timestamp;
use serde::Serialize;

/// Approximate size of a pool with its addresses.
pub(super) const POOL_BYTES: usize = 8 << 10;

/// A pool of source addresses.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PoolOut {
    id: i64,
    #[schema(example = "dedicated-1")]
    name: String,
    /// Whether servers without a pool of their own use it.
    shared: bool,
    /// Id of the account that it is reserved for; null if there is none, or if it is another account than the
    /// caller's.
    account: Option<i64>,
    created_at: String,
    /// When it, or the list of its addresses, was last changed.
    updated_at: String,
    addresses: Vec<AddressOut>,
}

/// An address. Times are RFC 3339; counts are since midnight UTC.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddressOut {
    #[schema(example = "192.0.2.1")]
    address: String,
    /// HELO name; its PTR record should match.
    #[schema(example = "mta1.example.com")]
    helo: String,
    /// Its share of the pool's mail.
    weight: u32,
    /// Incremented by every change; pass it as `if_version` to avoid overwriting a change that you have not seen.
    version: i64,
    created_at: String,
    updated_at: String,
    /// `none` (the address is warm), `running`, `paused` or `done`.
    warm_up: &'static str,
    /// Day of the warm-up plan, from 1.
    warm_up_day: Option<u32>,
    warm_up_started_at: Option<String>,
    warm_up_paused_reason: Option<String>,
    /// Null, like the next two fields, for a pool that is not the account's own: others send from it as well.
    sent_today: Option<u64>,
    bounced_today: Option<u64>,
    complained_today: Option<u64>,
}

impl From<PoolView> for PoolOut {
    fn from(view: PoolView) -> Self {
        Self {
            id: view.pool.id.0,
            name: view.pool.name,
            shared: view.pool.shared,
            account: view.pool.account_id.map(|id| id.0),
            created_at: view.pool.created_at.to_rfc3339(),
            updated_at: view.pool.updated_at.to_rfc3339(),
            addresses: view.addresses.into_iter().map(AddressOut::from).collect(),
        }
    }
}

impl From<AddressView> for AddressOut {
    fn from(view: AddressView) -> Self {
        let AddressView { source, warm_up, warm_up_day, shows_counts } = view;
        let shown = |count: u64| shows_counts.then_some(count);
        Self {
            address: source.address.to_string(),
            helo: source.helo.into(),
            weight: source.weight,
            version: source.version,
            created_at: source.created_at.to_rfc3339(),
            updated_at: source.updated_at.to_rfc3339(),
            warm_up: warm_up.as_str(),
            warm_up_day,
            warm_up_started_at: source.warmup_started_at.map(Timestamp::to_rfc3339),
            warm_up_paused_reason: source.warmup_paused_reason,
            sent_today: shown(source.sent_today),
            bounced_today: shown(source.bounced_today),
            complained_today: shown(source.complained_today),
        }
    }
}
