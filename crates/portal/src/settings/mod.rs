//! Settings of a server: name, mode, limits, tracking, retention, pool, ceilings; suspension, deletion and restoration.

mod change;
mod show;

use std::sync::Arc;

use axum::Router;

use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/settings", get(show::show).and_post(change::update))
        .route("/servers/{server}/pool", post(change::save_pool))
        .route("/servers/{server}/ceilings", post(change::save_ceilings))
        .route("/servers/{server}/suspend", post(change::suspend))
        .route("/servers/{server}/resume", post(change::resume))
        .route("/servers/{server}/delete", post(change::delete))
        .route("/servers/{server}/restore", post(change::restore))
}
