//! Servers of the account: list, creation, the overview of one and its first message; also the start page.

mod arrival;
mod create;
mod first_message;
mod health;
mod last_server;
mod list;
mod overview;
mod pools;
mod start;

use std::sync::Arc;

use axum::Router;

pub(crate) use arrival::{ArrivalPanel, AwaitedMessage};
pub(crate) use last_server::remember_last_server;
pub(crate) use pools::{PoolChoice, list_pool_choices};

use crate::page_routes::{AndPost as _, get};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/", get(start::show))
        .route("/servers", get(list::show).and_post(create::submit))
        .route("/servers/{server}", get(overview::show))
        .route("/servers/{server}/first_message", get(first_message::show).and_post(first_message::send))
}
