//! Webhooks of a server: endpoints, attempts, replays and samples.

mod change;
mod create;
mod filter;
mod list;
mod one;

use std::sync::Arc;

use axum::Router;

use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/webhooks", get(list::show).and_post(create::submit))
        .route("/servers/{server}/webhooks/{webhook}", get(one::show).and_post(change::update))
        .route("/servers/{server}/webhooks/{webhook}/test", post(change::post_sample))
        .route("/servers/{server}/webhooks/{webhook}/replay", post(change::replay))
        .route("/servers/{server}/webhooks/{webhook}/rotate_secret", post(change::rotate_secret))
        .route("/servers/{server}/webhooks/{webhook}/delete", post(change::delete))
}
