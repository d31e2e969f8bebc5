//! Functions that change settings of servers as the operator does.

use postroad_model::{PoolId, SendRate, ServerId, ServerMode};
use postroad_store::{CeilingsChange, PoolMove, ServerChange, ServerTracking, SetBy, Store, StoreError};

type SetResult = Result<(), StoreError>;

async fn update(store: &Store, id: ServerId, ceilings: CeilingsChange, change: ServerChange) -> SetResult {
    store.update_server_with_ceilings(id, None, (SetBy::Operator, ceilings), change).await.map(drop)
}

pub(crate) async fn set_mode(store: &Store, id: ServerId, mode: ServerMode) -> SetResult {
    let ceilings = CeilingsChange { mode: Some(mode), ..CeilingsChange::default() };
    update(store, id, ceilings, ServerChange::default()).await
}

pub(crate) async fn set_send_rate(store: &Store, id: ServerId, rate: Option<SendRate>) -> SetResult {
    let ceilings = CeilingsChange { send_rate: rate.into(), ..CeilingsChange::default() };
    update(store, id, ceilings, ServerChange::default()).await
}

pub(crate) async fn set_hourly_limit(store: &Store, id: ServerId, limit: Option<u32>) -> SetResult {
    let ceilings = CeilingsChange { hourly_limit: limit.into(), ..CeilingsChange::default() };
    update(store, id, ceilings, ServerChange::default()).await
}

pub(crate) async fn set_retention(
    store: &Store,
    id: ServerId,
    bodies_days: Option<u32>,
    messages_days: Option<u32>,
) -> SetResult {
    let (bodies_days, messages_days) = (bodies_days.into(), messages_days.into());
    let ceilings = CeilingsChange { bodies_days, messages_days, ..CeilingsChange::default() };
    update(store, id, ceilings, ServerChange::default()).await
}

pub(crate) async fn set_pool(store: &Store, id: ServerId, to: Option<PoolId>) -> SetResult {
    let from = store.find_server(id).await?.ok_or(StoreError::NotFound)?.pool_id;
    let change = ServerChange { pool: Some(PoolMove { from, to }), ..ServerChange::default() };
    update(store, id, CeilingsChange::default(), change).await
}

pub(crate) async fn set_tracking(store: &Store, id: ServerId, tracking: ServerTracking) -> SetResult {
    let change = ServerChange {
        track_opens: Some(tracking.opens),
        track_clicks: Some(tracking.clicks),
        track_excluded_hosts: Some(tracking.excluded_hosts),
        ..ServerChange::default()
    };
    update(store, id, CeilingsChange::default(), change).await
}
