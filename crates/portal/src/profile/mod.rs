//! The person's own sign-in: name, password, authenticator app, sessions.

mod change;
mod qr_code;
mod show;

use std::sync::Arc;

use axum::Router;

use crate::page_routes::{get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/account/you", get(show::show))
        .route("/account/you/name", post(change::rename))
        .route("/account/you/password", post(change::change_password))
        .route("/account/you/app", post(change::propose_app))
        .route("/account/you/app/enable", post(change::enable_app))
        .route("/account/you/app/disable", post(change::disable_app))
        .route("/account/you/sessions", post(change::end_session))
}
