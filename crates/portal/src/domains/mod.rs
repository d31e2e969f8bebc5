//! Domains of a server, or of the account: their DNS records, and the results of checks.

mod by_operator;
mod change;
mod create;
mod filter;
mod list;
mod of_account;
mod one;
mod operator_form;
mod records;
mod share;
mod verified;

use std::sync::Arc;

use axum::Router;

use by_operator::{set_tracking_of_account, set_verified_of_account};
pub(crate) use records::{RecordRow, record_row};
pub(crate) use verified::find_verified_domain;

use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/domains", get(list::show).and_post(create::submit))
        .route("/servers/{server}/domains/{name}", get(one::show))
        .route("/servers/{server}/domains/{name}/zone", get(one::zone))
        .route("/servers/{server}/domains/{name}/share", post(share::create))
        .route("/servers/{server}/domains/{name}/unshare", post(share::revoke))
        .route("/servers/{server}/domains/{name}/set_verified", post(by_operator::set_verified))
        .route("/servers/{server}/domains/{name}/set_tracking", post(by_operator::set_tracking))
        .route("/dns/{token}", get(share::show))
        .route("/dns/{token}/zone", get(share::zone))
        .route("/servers/{server}/domains/{name}/verify", post(change::verify))
        .route("/servers/{server}/domains/{name}/rotate_dkim", post(change::rotate_dkim))
        .route("/servers/{server}/domains/{name}/delete", post(change::delete))
        .route("/account/domains", get(of_account::list).and_post(of_account::create))
        .route("/account/domains/{name}", get(of_account::show))
        .route("/account/domains/{name}/zone", get(of_account::zone))
        .route("/account/domains/{name}/verify", post(of_account::verify))
        .route("/account/domains/{name}/rotate_dkim", post(of_account::rotate_dkim))
        .route("/account/domains/{name}/delete", post(of_account::delete))
        .route("/account/domains/{name}/share", post(of_account::share))
        .route("/account/domains/{name}/unshare", post(of_account::unshare))
        .route("/account/domains/{name}/set_verified", post(set_verified_of_account))
        .route("/account/domains/{name}/set_tracking", post(set_tracking_of_account))
        .route("/operator/accounts/{account}/domains", get(of_account::list).and_post(of_account::create))
        .route("/operator/accounts/{account}/domains/{name}", get(of_account::show))
        .route("/operator/accounts/{account}/domains/{name}/zone", get(of_account::zone))
        .route("/operator/accounts/{account}/domains/{name}/verify", post(of_account::verify))
        .route("/operator/accounts/{account}/domains/{name}/rotate_dkim", post(of_account::rotate_dkim))
        .route("/operator/accounts/{account}/domains/{name}/delete", post(of_account::delete))
        .route("/operator/accounts/{account}/domains/{name}/share", post(of_account::share))
        .route("/operator/accounts/{account}/domains/{name}/unshare", post(of_account::unshare))
        .route("/operator/accounts/{account}/domains/{name}/set_verified", post(set_verified_of_account))
        .route("/operator/accounts/{account}/domains/{name}/set_tracking", post(set_tracking_of_account))
}
