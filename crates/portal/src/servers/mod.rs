//! Servers of the account: list, creation, and the overview of one.

mod create;
mod first_message;
mod health;
mod list;
mod overview;
mod pools;
mod start;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

pub(crate) use first_message::Arrival;

pub(crate) use pools::{PoolChoice, pools_for};

use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/", get(start::show))
        .route("/servers", get(list::show).post(create::submit))
        .route("/servers/{server}", get(overview::show))
        .route("/servers/{server}/first_message", get(first_message::show).post(first_message::send))
}
