//! The installation: waiting mail, gates, receivers, accounts, keys, nodes, and a check-up. For the operator alone.

mod account;
mod accounts;
mod change;
mod doctor;
mod keys;
mod nodes;
mod queue;
mod show;

use std::sync::Arc;

use axum::Router;

pub(crate) use nodes::certificate_troubles;

use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;

/// Paths and titles of the pages.
pub(crate) const TABS: [(&str, &str); 7] = [
    ("/operator", "Delivery"),
    ("/operator/queue", "Waiting mail"),
    ("/operator/accounts", "Accounts"),
    ("/operator/keys", "Operator keys"),
    ("/operator/nodes", "Nodes"),
    ("/operator/audit", "Audit log"),
    ("/operator/doctor", "Check-up"),
];

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/operator", get(show::show))
        .route("/operator/queue", get(queue::show).and_post(queue::submit))
        .route("/operator/doctor", get(doctor::show))
        .route("/operator/doctor/zone", get(doctor::zone))
        .route("/operator/nodes", get(nodes::show))
        .route("/operator/accounts", get(accounts::show).and_post(accounts::create))
        .route("/operator/accounts/{account}", get(account::show).and_post(account::update))
        .route("/operator/accounts/{account}/servers", post(account::create_server))
        .route("/operator/accounts/{account}/delete", post(account::delete))
        .route("/operator/accounts/{account}/restore", post(account::restore))
        .route("/operator/accounts/{account}/suspend", post(accounts::suspend))
        .route("/operator/accounts/{account}/resume", post(accounts::resume))
        .route("/operator/keys", get(keys::show).and_post(keys::create))
        .route("/operator/keys/{key}/revoke", post(keys::revoke))
        .route("/operator/maintenance", post(change::set_maintenance))
        .route("/operator/suspend", post(change::suspend))
        .route("/operator/resume", post(change::resume))
}
