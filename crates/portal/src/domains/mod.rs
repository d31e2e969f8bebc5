//! Domains of a server, or of the account: their DNS records, and the results of checks.

mod change;
mod create;
mod list;
mod of_account;
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
        .route("/account/domains", get(of_account::list).post(of_account::create))
        .route("/account/domains/{name}", get(of_account::show))
        .route("/account/domains/{name}/zone", get(of_account::zone))
        .route("/account/domains/{name}/verify", post(of_account::verify))
        .route("/account/domains/{name}/rotate_dkim", post(of_account::rotate_dkim))
        .route("/account/domains/{name}/delete", post(of_account::delete))
        .route("/dns/{token}", get(share::show))
        .route("/dns/{token}/zone", get(share::zone))
        .route("/servers/{server}/domains/{name}/verify", post(change::verify))
        .route("/servers/{server}/domains/{name}/rotate_dkim", post(change::rotate_dkim))
        .route("/servers/{server}/domains/{name}/delete", post(change::delete))
}
