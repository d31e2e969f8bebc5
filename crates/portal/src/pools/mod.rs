//! Pools of source addresses: HELO names, weights, warm-up. The operator creates them. An account sees its own pools,
//! the shared one and those that its servers use, and controls the warm-up of its own.

mod address;
mod change;
mod list;

use std::sync::Arc;

use axum::Router;

use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/account/pools", get(list::show).and_post(change::create))
        .route("/account/pools/delete", post(change::delete))
        .route("/account/pools/address", get(address::show).and_post(change::add_address))
        .route("/account/pools/address/update", post(change::update_address))
        .route("/account/pools/address/remove", post(change::remove_address))
        .route("/account/pools/address/warm_up", post(change::change_warm_up))
}
