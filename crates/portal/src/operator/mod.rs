//! The installation: queue, gates, receivers, accounts, and a check-up. For the operator alone.

mod accounts;
mod change;
mod doctor;
mod show;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/operator", get(show::show))
        .route("/operator/doctor", get(doctor::show))
        .route("/operator/accounts", get(accounts::show).post(accounts::create))
        .route("/operator/accounts/{account}/suspend", post(accounts::suspend))
        .route("/operator/accounts/{account}/resume", post(accounts::resume))
        .route("/operator/suspend", post(change::suspend))
        .route("/operator/resume", post(change::resume))
}
