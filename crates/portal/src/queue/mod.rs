//! Queue of a server: waiting messages with their reasons, gates, suspend and resume.

mod change;
mod show;

use std::sync::Arc;

use axum::Router;

pub(crate) use show::{cursor, parse_domain};

use crate::page_routes::{get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/queue", get(show::show))
        .route("/servers/{server}/queue/suspend", post(change::suspend))
        .route("/servers/{server}/queue/resume", post(change::resume))
}
