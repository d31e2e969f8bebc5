//! Suppressed addresses of a server: list, add, remove, import, export.

mod change;
mod export;
mod filter;
mod import;
mod list;

use std::sync::Arc;

use axum::Router;

use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/suppressions", get(list::show).and_post(change::add))
        .route("/servers/{server}/suppressions/remove", post(change::remove))
        .route("/servers/{server}/suppressions/import", post(import::submit))
        .route("/servers/{server}/suppressions/export", get(export::download_csv))
}
