//! Suppressed addresses of a server: list, add, remove, export.

mod change;
mod list;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/suppressions", get(list::show).post(change::add))
        .route("/servers/{server}/suppressions/remove", post(change::remove))
        .route("/servers/{server}/suppressions/export", get(list::export))
}
