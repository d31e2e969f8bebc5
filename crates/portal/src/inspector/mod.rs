//! Request inspector: a URL of the service itself that accepts any request, and a page that shows requests as they
//! arrive. For trying webhooks without a receiver.
//!
//! The store keeps the newest 50 requests (1 MiB) of an inspector, and a page on any node shows them. An inspector is
//! valid for a day.

mod live;
mod receive;
mod show;

use std::sync::Arc;

use axum::Router;
use axum::routing::any;

use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/webhooks/inspector", get(show::show).and_post(show::create))
        .route("/servers/{server}/webhooks/inspector/clear", post(show::clear))
        .route("/servers/{server}/webhooks/inspector/live", get(live::stream))
}

/// Accepts requests from anybody who knows the URL: they come from programs, so their origin is not checked.
pub(crate) fn receiver() -> Router<Arc<PortalState>> {
    Router::new().route("/inspect/{token}", any(receive::take))
}
