//! API keys of a server: shown once when they are created, with commands that send a first message.

mod change;
mod create;
mod list;
mod shown_once;

use std::sync::Arc;

use axum::Router;

pub(crate) use create::{read_last_day, read_networks};

use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/keys", get(list::show).and_post(create::submit))
        .route("/servers/{server}/keys/{key}", post(change::update))
        .route("/servers/{server}/keys/{key}/revoke", post(change::revoke))
        .route("/servers/{server}/keys/{key}/rotate", post(change::rotate))
}
