//! Domains of a server: their DNS records, and the results of checks.

mod change;
mod create;
mod list;
mod one;
mod records;
mod share;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

pub(crate) use records::{RecordRow, record_row};

use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/domains", get(list::show).post(create::submit))
        .route("/servers/{server}/domains/{name}", get(one::show))
        .route("/servers/{server}/domains/{name}/zone", get(one::zone))
        .route("/servers/{server}/domains/{name}/share", post(share::create))
        .route("/servers/{server}/domains/{name}/unshare", post(share::revoke))
        .route("/dns/{token}", get(share::show))
        .route("/dns/{token}/zone", get(share::zone))
        .route("/servers/{server}/domains/{name}/verify", post(change::verify))
        .route("/servers/{server}/domains/{name}/rotate_dkim", post(change::rotate_dkim))
        .route("/servers/{server}/domains/{name}/delete", post(change::delete))
}
